/* The z-score detector of plugins/detector-standard in C, against wit/ alone: no libc, no generated bindings.
 *
 * In: the contract's lists, laid into memory by the host as the component model's canonical ABI says. Out: a
 * detection, laid out the same way. A record is a struct, a list or string a pointer and a length, an option a
 * byte and a value, a result or variant a byte and a payload. Every call has an instance of its own, so memory
 * is allocated and never freed.
 */
#include <stdint.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define PLUGIN "terrane:types/plugin@0.1.0#"
#define DETECTOR "terrane:anomaly/detector@0.1.0#"

typedef struct { const char *text; uint32_t length; } string;
typedef struct { uint32_t *items; uint32_t length; } list_u32;
typedef struct { int64_t *items; uint32_t length; } list_s64;
typedef struct { double *items; uint32_t length; } list_f64;
typedef struct { uint8_t *items; uint32_t length; } list_bool;
/* A list whose items this plugin neither reads nor writes. */
typedef struct { void *items; uint32_t length; } list_any;
typedef struct { uint8_t is_some; double value; } option_f64;
typedef struct { uint8_t is_some; uint32_t value; } option_u32;
typedef struct { uint8_t is_some; uint64_t value; } option_u64;

/* terrane:types */
typedef struct {
    int64_t now_unix_ms;
    string time_zone, correlation_id;
    uint32_t budget_ms;
    string config_json;
    list_any extra;
} call_context;
typedef struct { string id, version, display_name, api, config_schema_json; list_any extra; } plugin_info;
enum { UNSUPPORTED, INVALID_INPUT, INVALID_CONFIG, INTERNAL };
typedef struct { uint8_t tag; string text; } plugin_error;
typedef struct { string path, message; } issue;

/* terrane:anomaly */
typedef struct { list_u32 offsets; list_s64 timestamps_ms; list_f64 values; option_u64 step_ms; } series_batch;
typedef struct { option_f64 sensitivity; uint32_t training_size; option_u32 seasonality; list_any extra; } params;
typedef struct {
    string kind, display_name;
    double default_sensitivity;
    uint32_t min_points;
    uint8_t has_model;
    string settings_schema_json;
    list_any extra;
} detector_info;
typedef struct { list_f64 scores, raw, expected, lower_bound, upper_bound; list_bool anomalous; } detection;

typedef struct { call_context ctx; string kind; list_any models; series_batch history, points; params p; } detect_arguments;
typedef struct { uint8_t is_err; union { detection ok; plugin_error err; } is; } detect_result;
typedef struct { uint8_t is_err; union { list_any ok; plugin_error err; } is; } train_result;
typedef struct { uint8_t is_err; struct { issue *items; uint32_t length; } issues; } check_config_result;

/* The layouts must equal those of the ABI. With other padding, the host and the plugin would access other fields. */
_Static_assert(sizeof(call_context) == 48, "call-context");
_Static_assert(sizeof(series_batch) == 40, "series-batch");
_Static_assert(sizeof(detect_arguments) == 184, "the arguments of detect");
_Static_assert(sizeof(detector_info) == 48, "detector-info");
_Static_assert(sizeof(detect_result) == 52, "the result of detect");

/* Memory: from the end of the data upwards. */
extern unsigned char __heap_base;
static uintptr_t next;

static void *allocate(uint32_t bytes, uint32_t alignment) {
    const uint32_t PAGE = 65536;
    if (next == 0) next = (uintptr_t)&__heap_base;
    uintptr_t start = (next + alignment - 1) & ~(uintptr_t)(alignment - 1);
    uintptr_t end = start + bytes;
    uintptr_t there = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
    if (end < start) __builtin_trap();
    if (end > there && __builtin_wasm_memory_grow(0, (end - there + PAGE - 1) / PAGE) == (uint32_t)-1) __builtin_trap();
    next = end;
    return (void *)start;
}

EXPORT("cabi_realloc")
void *cabi_realloc(void *old, uint32_t old_bytes, uint32_t alignment, uint32_t bytes) {
    unsigned char *fresh = allocate(bytes, alignment);
    const unsigned char *from = old;
    for (uint32_t i = 0; i < old_bytes && i < bytes; i++) fresh[i] = from[i];
    return fresh;
}

#define STRING(literal) ((string){literal, sizeof(literal) - 1})

static int is(string found, string wanted) {
    if (found.length != wanted.length) return 0;
    for (uint32_t i = 0; i < found.length; i++)
        if (found.text[i] != wanted.text[i]) return 0;
    return 1;
}

EXPORT(PLUGIN "describe")
plugin_info *describe(void) {
    static plugin_info info;
    info.id = STRING("detector-c");
    info.version = STRING("0.1.0");
    info.display_name = STRING("Z-score in C");
    info.api = STRING("terrane:plugins@0.1.0");
    return &info;
}

EXPORT(PLUGIN "check-config")
check_config_result *check_config(const char *text, uint32_t length) {
    static check_config_result result;
    static issue none;
    if (length != 0 && !is((string){text, length}, STRING("{}"))) {
        none.message = STRING("detector-c takes no configuration");
        result.is_err = 1;
        result.issues.items = &none;
        result.issues.length = 1;
    }
    return &result;
}

EXPORT(DETECTOR "detectors")
list_any *detectors(void) {
    static list_any kinds;
    static detector_info z_score;
    z_score.kind = STRING("z_score_c");
    z_score.display_name = STRING("Z-score in C");
    z_score.default_sensitivity = 2.5;
    z_score.min_points = 3;
    kinds.items = &z_score;
    kinds.length = 1;
    return &kinds;
}

EXPORT(DETECTOR "train")
train_result *train(const void *arguments) {
    static train_result result;
    (void)arguments;
    result.is_err = 1;
    result.is.err.tag = UNSUPPORTED;
    result.is.err.text = STRING("there is nothing to train");
    return &result;
}

static int is_nan(double value) { return value != value; }
static double not_a_number(void) { return __builtin_nan(""); }

typedef struct { int is_known; double mean, deviation; } baseline;

/* Mean and standard deviation of the population, in two passes; equal values have a spread of exactly 0. */
static baseline learn(const double *values, uint32_t length) {
    double first = 0, sum = 0, squares = 0;
    uint32_t count = 0, equal = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (is_nan(values[i])) continue;
        if (count++ == 0) first = values[i];
        equal += values[i] == first;
        sum += values[i] - first;
    }
    if (equal == count) return (baseline){count > 0, first, 0};
    double mean = first + sum / count;
    for (uint32_t i = 0; i < length; i++)
        if (!is_nan(values[i])) squares += (values[i] - mean) * (values[i] - mean);
    return (baseline){1, mean, __builtin_sqrt(squares / count)};
}

static void judge(detection *out, uint32_t at, double value, baseline known, double sensitivity) {
    const double LARGEST = 0x1.fffffffffffffp1023;
    double reach = sensitivity * known.deviation, nan = not_a_number();
    double score = 0, raw = nan;
    int anomalous = 0;
    if (known.is_known && !is_nan(value)) {
        double distance = value - known.mean;
        if (distance == 0) {
            raw = 0;
        } else if (known.deviation <= 0) {
            score = 1;
            anomalous = 1;
        } else {
            raw = distance / known.deviation;
            if (raw > LARGEST) raw = LARGEST;
            if (raw < -LARGEST) raw = -LARGEST;
            double size = raw < 0 ? -raw : raw;
            score = size / (2 * sensitivity);
            if (score > 1) score = 1;
            anomalous = size > sensitivity;
        }
    }
    out->scores.items[at] = score;
    out->raw.items[at] = raw;
    out->expected.items[at] = known.is_known ? known.mean : nan;
    out->lower_bound.items[at] = known.is_known ? known.mean - reach : nan;
    out->upper_bound.items[at] = known.is_known ? known.mean + reach : nan;
    out->anomalous.items[at] = (uint8_t)anomalous;
}

static list_f64 column(uint32_t length) { return (list_f64){allocate(length * 8, 8), length}; }

static detect_result *refuse(uint8_t tag, string text) {
    static detect_result result;
    result.is_err = 1;
    result.is.err.tag = tag;
    result.is.err.text = text;
    return &result;
}

EXPORT(DETECTOR "detect")
detect_result *detect(const detect_arguments *asked) {
    static detect_result result;
    const series_batch *history = &asked->history, *points = &asked->points;
    double sensitivity = asked->p.sensitivity.is_some ? asked->p.sensitivity.value : 2.5;
    if (!is(asked->kind, STRING("z_score_c"))) return refuse(UNSUPPORTED, STRING("there is one kind: z_score_c"));
    if (!(sensitivity > 0)) return refuse(INVALID_INPUT, STRING("sensitivity: a number greater than 0"));
    if (history->offsets.length != points->offsets.length)
        return refuse(INVALID_INPUT, STRING("history and points: not the same number of series"));
    uint32_t length = points->values.length;
    detection *out = &result.is.ok;
    out->scores = column(length);
    out->raw = column(length);
    out->expected = column(length);
    out->lower_bound = column(length);
    out->upper_bound = column(length);
    out->anomalous = (list_bool){allocate(length, 1), length};
    for (uint32_t i = 0; i + 1 < points->offsets.length; i++) {
        uint32_t from = history->offsets.items[i], to = history->offsets.items[i + 1];
        baseline known = learn(history->values.items + from, to - from);
        for (uint32_t at = points->offsets.items[i]; at < points->offsets.items[i + 1]; at++)
            judge(out, at, points->values.items[at], known, sensitivity);
    }
    return &result;
}
