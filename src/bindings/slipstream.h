/* Slipstream's engine inside your program: load a model, generate text, from C or any language that calls C.
 *
 *   slipstream_engine *engine = slipstream_open("model.gguf", NULL);
 *   if (engine == NULL) puts(slipstream_last_error());
 *   slipstream_generate(engine, "{\"prompt\": \"Once upon a time\", \"max_tokens\": 64}", on_event, NULL);
 *   ...
 *   slipstream_close(engine);
 *
 * Requests are JSON with the fields of OpenAI's API: those of /v1/chat/completions where there are
 * "messages", those of /v1/completions where there is a "prompt" (docs/api.md lists them, with
 * llama.cpp's and vLLM's names for the others). What a request cannot have is an error that names the
 * field. Many may run at a time; they are computed together, and share what their prompts have in common.
 *
 * Threads: every function may be called from any thread, slipstream_close() once and last.
 * Errors:  a function that fails returns NULL or -1; slipstream_last_error() has the message.
 */
#ifndef SLIPSTREAM_H
#define SLIPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct slipstream_engine slipstream_engine;

typedef enum slipstream_event_kind {
  SLIPSTREAM_CONTENT = 0,        /* text: more of the answer */
  SLIPSTREAM_REASONING = 1,      /* text: more of what the model thinks before it answers */
  SLIPSTREAM_CALL_BEGIN = 2,     /* text: the name of the tool that the model calls */
  SLIPSTREAM_CALL_ARGUMENTS = 3, /* text: more of the call's arguments, which are a JSON object */
  SLIPSTREAM_CALL_END = 4,
  SLIPSTREAM_END =
      5 /* the last event of a request. text: "stop", "length", "tool_calls", "cancelled" or
                        "error" */
} slipstream_event_kind;

typedef struct slipstream_event {
  int64_t request;  /* as slipstream_generate() returned it */
  int32_t kind;     /* slipstream_event_kind */
  int32_t call;     /* of the three kinds about calls: 0 for the first call of an answer, ... */
  const char* text; /* UTF-8, ends with a zero byte; valid until the function returns */
  size_t n_text_bytes;
  /* SLIPSTREAM_END only: */
  const char* error; /* why, if text is "error"; else "" */
  int32_t n_prompt;  /* tokens */
  int32_t n_cached;  /* of these, tokens that were not computed again */
  int32_t n_generated;
} slipstream_event;

/* Called on the engine's thread, which computes nothing meanwhile: be quick, and do not wait. It may call
 * slipstream_generate() and slipstream_cancel(), and not slipstream_close(). */
typedef void (*slipstream_on_event)(const slipstream_event* event, void* user);

/* model: a GGUF file, or org/repo:quant of one that `slipstream pull` has installed.
 * options: JSON, or NULL for the defaults:
 *   {"kv": "auto", "context": 0, "parallel": 4, "threads": 0, "prefixes": "", "prefixes_bytes": 8589934592}
 * kv: the scheme of the KV cache, as --kv. context: tokens of all requests together; 0: the model's own, or
 * what fits. parallel: requests that run at a time. threads: 0 for one per core. prefixes: a directory that
 * keeps computed prompts, as --kv-disk, and its limit.
 * Reads the model, which may take minutes. */
slipstream_engine* slipstream_open(const char* model, const char* options);

/* Begins a request and returns its number, or -1. All events come later, the last of them once. */
int64_t slipstream_generate(slipstream_engine* engine, const char* request,
                            slipstream_on_event on_event, void* user);

/* Ends a request soon, with "cancelled". No effect if it has ended. */
void slipstream_cancel(slipstream_engine* engine, int64_t request);

/* Cancels what still runs, waits for its last events and frees the engine. NULL is ignored. */
void slipstream_close(slipstream_engine* engine);

/* What the last function that failed on this thread complained of; "" if none has. Valid until the
 * next one fails. */
const char* slipstream_last_error(void);

/* "0.1.0" */
const char* slipstream_version(void);

#ifdef __cplusplus
}
#endif

#endif /* SLIPSTREAM_H */
