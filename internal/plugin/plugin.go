// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is `kubectl middleware`: it shows and steers the operator's kinds with the rights of whoever runs it. Each command
// reads (package read), makes a model of that (overview, forecast), and prints the model. It talks to the API server alone, never to
// the operator, so that it says something while there is none.
package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Version is set at build time.
var Version = "development"

// ErrFound ends the program with exit code 1 and without a message: what there is to say was printed.
var ErrFound = errors.New("")

// Environment is what the program is run in.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	// Lookup finds a variable, as os.LookupEnv does.
	Lookup func(string) (string, bool)
	// Kubectl is the path of kubectl; empty: the one of PATH.
	Kubectl string
}

// program is what its commands have in common.
type program struct {
	Environment
	connection *connection
	output     string
	width      int
}

// New is the command line.
func New(env Environment) *cobra.Command { return newProgram(env).root() }

func newProgram(env Environment) *program {
	return &program{Environment: env, connection: newConnection()}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-middleware",
		Short: "see and steer RedisClusters and the other kinds of the Middleware Operator",
		Long: "Shows and steers the kinds of the Middleware Operator, with your rights and no others: `kubectl middleware check` says which\n" +
			"each command needs. Without a terminal, or with NO_COLOR set, nothing is coloured.",
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl middleware"},
		SilenceUsage: true, SilenceErrors: true,
		Version: Version,
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	p.connection.flags(root.PersistentFlags())
	root.PersistentFlags().IntVar(&p.width, "width", 0, "columns to lay text out in (default: the terminal's, or 80)")
	root.AddCommand(p.status(), p.plan(), p.pause(), p.resume(), p.restart(), p.failover(), p.fence(), p.unfence(), p.backup(),
		p.restore(), p.cli(), p.top(), p.keys(), p.logs(), p.report(), p.check(), p.web())
	return root
}

// outputs adds -o to a command whose result has a model.
func (p *program) outputs(command *cobra.Command) {
	command.Flags().StringVarP(&p.output, "output", "o", "text", "text, json or yaml")
	forms := cobra.FixedCompletions([]string{"text", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)
	_ = command.RegisterFlagCompletionFunc("output", forms) // the flag is there
}

func (p *program) checkOutput() error {
	switch p.output {
	case "", "text", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output: %q is none of text, json, yaml", p.output)
}

// print writes a model as it was asked for.
func (p *program) print(model any, text func(terminal.Page) string) error {
	var encoded []byte
	var err error
	switch p.output {
	case "json":
		encoded, err = json.MarshalIndent(model, "", "  ")
		encoded = append(encoded, '\n')
	case "yaml":
		encoded, err = yaml.Marshal(model)
	default:
		encoded = []byte(text(p.page()))
	}
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if _, is := p.terminal(); is {
		encoded = shown(encoded, p.output)
	}
	_, err = p.Out.Write(encoded)
	return err
}

// shown is what was encoded for a terminal: characters that steer one, or turn the direction of text, do not get there raw. JSON has
// escapes for them; in YAML a question mark stands for each.
func shown(encoded []byte, form string) []byte {
	if form != "json" && form != "yaml" {
		return encoded // the text is printable but for its colours
	}
	var b []byte
	for _, r := range string(encoded) {
		switch {
		case r == '\n' || r != utf8.RuneError && unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case form == "yaml":
			b = append(b, '?')
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, "\\u%04x", unit)
			}
		}
	}
	return b
}

// terminal is where output goes, if that is one.
func (p *program) terminal() (*os.File, bool) {
	file, is := p.Out.(*os.File)
	return file, is && term.IsTerminal(int(file.Fd()))
}

func (p *program) say(format string, arguments ...any) error {
	_, err := fmt.Fprintln(p.Out, terminal.Clean(fmt.Sprintf(format, arguments...)))
	return err
}

const usualWidth = 80

// page is the terminal's, without colours where it is none.
func (p *program) page() terminal.Page {
	page := terminal.Page{Width: usualWidth}
	if file, is := p.terminal(); is {
		no, _ := p.Lookup("NO_COLOR")
		kind, _ := p.Lookup("TERM")
		page.Colour = no == "" && kind != "dumb"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			page.Width = width
		}
	}
	if p.width > 0 {
		page.Width = p.width
	}
	return page.Sized()
}

// named splits KIND/NAME; without a kind it is a RedisCluster.
func named(argument string) (kind, name string, err error) {
	kind, name, found := strings.Cut(argument, "/")
	if !found {
		kind, name = "rediscluster", argument
	}
	if name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is neither NAME (of a RedisCluster) nor KIND/NAME", argument)
	}
	return kind, name, nil
}

// Told is an error for a terminal: it may repeat what a server or the author of an object wrote.
func Told(err error) string { return terminal.Clean(err.Error()) }
