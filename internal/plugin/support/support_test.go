// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"encoding/json"
	"strings"
	"testing"
)

const secret = "hunter2-horse"

// Wherever a password may stand in logs and settings, it is taken out.
func TestPasswordsAreTakenOut(t *testing.T) {
	for _, line := range []string{
		"requirepass " + secret, `masterauth "` + secret + ` with blanks"`, "password=" + secret, "PASSWORD: '" + secret + "'",
		`{"password":"` + secret + `","x":1}`, "redis://default:" + secret + "@cache:6379/0", "user catalog on >" + secret + " ~* +@read",
		"user catalog on #" + secret + "2bb80d53 ~*", "AUTH " + secret, "AUTH catalog " + secret, "Authorization: Bearer " + secret,
		"AWS_SECRET_ACCESS_KEY=" + secret, "tls-key-file-pass x\nmaster-password " + secret, "REDISCLI_AUTH=" + secret,
		"-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n" + secret,
		`{"password":"a\"` + secret + `"}`, `password="` + secret + ` that is cut off`, `{"m":"{\"password\":\"` + secret + `\"}"}`,
		`{"passwords":["a","` + secret + `"]}`, `["--requirepass","` + secret + `"]`, "password => " + secret, "password: a," + secret,
		"redis-cli -a " + secret + " ping", "redis-cli --pass " + secret, `sh -c "redis-cli -a '` + secret + `'"`,
		"REDIS_AUTH=" + secret, "DB_PWD=" + secret, "DSN=root:" + secret + "@tcp(db)/x",
		"redis://default:a/b@" + secret + "@cache:6379/0", "REDISS://default:" + secret + "@cache:6379",
		`1339518083.107412 [0 127.0.0.1:60866] "AUTH" "` + secret + `"`, `"HELLO" "3" "AUTH" "default" "a \"` + secret + `"`,
		"user catalog on >" + secret[:7] + " ~*", `"ACL" "SETUSER" "catalog" ">` + secret + `"`,
		"the password is \"a\n          " + secret + "\"",
		"token: " + secret, "the password is " + secret, "azure_storage_sas_token=" + secret,
	} {
		if got := Text(line); strings.Contains(got, secret[:7]) || !strings.Contains(got, Redacted) {
			t.Errorf("%q became %q", line, got)
		}
	}
	for _, line := range []string{"maxmemory 100mb", "1:M 24 Nov 2026 12:00:00.000 * Ready to accept connections tcp",
		"cluster-node-timeout 5000",
		"10.0.0.1:6379@16379,cache-0-0 master - 0 1 2 connected 0-5460"} {
		if got := Text(line); got != line {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func TestObjectsAreWithoutPasswords(t *testing.T) {
	content := map[string]any{}
	text := `{"kind": "Pod", "metadata": {"name": "cache-0-0", "managedFields": [{"x": "` + secret + `"}],
		"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "` + secret + `", "note": "password: ` + secret + `"}},
		"spec": {"containers": [{"name": "redis", "env": [{"name": "ADMIN_PASSWORD", "value": "` + secret + `"},
			{"name": "TZ", "value": "` + secret + `"},
			{"name": "REDIS_ADDR", "value": "redis://localhost:6379"}, {"name": "REDIS_AUTH", "value": "` + secret + `"},
			{"name": "P", "valueFrom": {"secretKeyRef": {"name": "cache-auth", "key": "password"}}}], "args": ["--requirepass ` + secret + `"],
			"command": ["redis-server", "--requirepass", "` + secret + `", "--port", "6379", "-a", "` + secret + `",
				"AUTH", "me", "` + secret + `", "PING"]}],
			"auth": {"secretName": "mine"}, "apiToken": "` + secret + `", "passwords": ["` + secret + `", ["` + secret + `"]],
			"volumes": [{"secret": {"secretName": "cache-tls"}}]},
		"data": {"redis.conf": "maxmemory 1gb\nrequirepass ` + secret + `\n"}}`
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(Object(content))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(encoded), secret) {
		t.Errorf("got %s", encoded)
	}
	for _, stays := range []string{`"cache-auth"`, `"mine"`, "redis://localhost:6379", `"cache-tls"`, `"--port","6379"`, `"PING"`,
		"maxmemory 1gb"} {
		if !strings.Contains(string(encoded), stays) {
			t.Errorf("%s is gone from %s", stays, encoded)
		}
	}
}
