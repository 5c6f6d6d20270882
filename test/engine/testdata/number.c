/* A module with a type of its own: NUMBER.SET key n, NUMBER.GET key, and NUMBER.ARGS, which answers
 * with what it was loaded with. It stands for the modules of Redis 8 and valkey-bundle. It asks for
 * the few functions that it needs by their names, as redismodule.h does, and needs no C library: the
 * engines of the tests bring their own. */

typedef void Context, String, Key, IO, Type, Digest;
typedef int (*Command)(Context *, String **, int);

static int (*GetApi)(const char *, void *);
static int (*SetModuleAttribs)(Context *, const char *, int, int);
static int (*CreateCommand)(Context *, const char *, Command, const char *, int, int, int);
static Type *(*CreateDataType)(Context *, const char *, int, void *);
static Key *(*OpenKey)(Context *, String *, int);
static void (*CloseKey)(Key *);
static int (*KeyType)(Key *);
static Type *(*ModuleTypeGetType)(Key *);
static void *(*ModuleTypeGetValue)(Key *);
static int (*ModuleTypeSetValue)(Key *, Type *, void *);
static int (*StringToLongLong)(const String *, long long *);
static const char *(*StringPtrLen)(const String *, unsigned long *);
static int (*ReplyWithLongLong)(Context *, long long);
static int (*ReplyWithError)(Context *, const char *);
static int (*ReplyWithArray)(Context *, long);
static int (*ReplyWithStringBuffer)(Context *, const char *, unsigned long);
static int (*ReplicateVerbatim)(Context *);
static void *(*Alloc)(unsigned long);
static void (*Free)(void *);
static void (*SaveSigned)(IO *, long long);
static long long (*LoadSigned)(IO *);
static void (*EmitAOF)(IO *, const char *, const char *, ...);

#define READ 1
#define WRITE 2
#define EMPTY 0

static Type *number;

struct methods {
    unsigned long long version;
    void *(*load)(IO *, int);
    void (*save)(IO *, void *);
    void (*rewrite)(IO *, String *, void *);
    unsigned long (*usage)(const void *);
    void (*digest)(Digest *, void *);
    void (*free)(void *);
};

static void *load(IO *io, int version) {
    (void)version;
    long long *value = Alloc(sizeof *value);
    *value = LoadSigned(io);
    return value;
}
static void save(IO *io, void *value) { SaveSigned(io, *(long long *)value); }
static void rewrite(IO *io, String *key, void *value) { EmitAOF(io, "NUMBER.SET", "sl", key, *(long long *)value); }
static unsigned long usage(const void *value) { return sizeof *(long long *)value; }
static void destroy(void *value) { Free(value); }

static int set(Context *c, String **argv, int argc) {
    long long n;
    if (argc != 3 || StringToLongLong(argv[2], &n)) return ReplyWithError(c, "ERR NUMBER.SET key number");
    Key *key = OpenKey(c, argv[1], READ | WRITE);
    if (KeyType(key) != EMPTY && ModuleTypeGetType(key) != number) { CloseKey(key); return ReplyWithError(c, "WRONGTYPE"); }
    long long *value = Alloc(sizeof *value);
    *value = n;
    ModuleTypeSetValue(key, number, value);
    CloseKey(key);
    ReplicateVerbatim(c);
    return ReplyWithLongLong(c, n);
}

static int get(Context *c, String **argv, int argc) {
    if (argc != 2) return ReplyWithError(c, "ERR NUMBER.GET key");
    Key *key = OpenKey(c, argv[1], READ);
    long long n = 0;
    int found = key && KeyType(key) != EMPTY && ModuleTypeGetType(key) == number;
    if (found) n = *(long long *)ModuleTypeGetValue(key);
    if (key) CloseKey(key);
    return found ? ReplyWithLongLong(c, n) : ReplyWithError(c, "ERR no number");
}

static char loaded[8][64];
static unsigned long lengths[8];
static int count;

static int args(Context *c, String **argv, int argc) {
    (void)argv, (void)argc;
    ReplyWithArray(c, count);
    for (int i = 0; i < count; i++) ReplyWithStringBuffer(c, loaded[i], lengths[i]);
    return 0;
}

int RedisModule_OnLoad(Context *c, String **argv, int argc) {
    GetApi = *(int (**)(const char *, void *))c;
#define API(name) if (GetApi("RedisModule_" #name, (void *)&name)) return 1;
    API(SetModuleAttribs) API(CreateCommand) API(CreateDataType) API(OpenKey) API(CloseKey) API(KeyType)
    API(ModuleTypeGetType) API(ModuleTypeGetValue) API(ModuleTypeSetValue) API(StringToLongLong) API(StringPtrLen)
    API(ReplyWithLongLong) API(ReplyWithError) API(ReplyWithArray) API(ReplyWithStringBuffer) API(ReplicateVerbatim)
    API(Alloc) API(Free) API(SaveSigned) API(LoadSigned) API(EmitAOF)
    SetModuleAttribs(c, "number", 1, 1);
    for (count = 0; count < argc && count < 8; count++) {
        const char *text = StringPtrLen(argv[count], &lengths[count]);
        for (unsigned long i = 0; i < lengths[count] && i < 64; i++) loaded[count][i] = text[i];
    }
    static struct methods methods = {1, load, save, rewrite, usage, 0, destroy};
    number = CreateDataType(c, "number-dt", 0, &methods);
    if (!number) return 1;
    if (CreateCommand(c, "number.set", set, "write deny-oom", 1, 1, 1)) return 1;
    if (CreateCommand(c, "number.get", get, "readonly", 1, 1, 1)) return 1;
    return CreateCommand(c, "number.args", args, "readonly", 0, 0, 0);
}
