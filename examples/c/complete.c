/* Continues a text: cc complete.c -lslipstream -lpthread && ./a.out MODEL.gguf "Once upon a time" */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <slipstream.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended = PTHREAD_COND_INITIALIZER;
static int status = -1;

static void on_event(const slipstream_event *event, void *user) {
  (void)user;
  if (event->kind == SLIPSTREAM_CONTENT) {
    fwrite(event->text, 1, event->n_text_bytes, stdout);
    fflush(stdout);
  } else if (event->kind == SLIPSTREAM_END) {
    fprintf(stderr, "\n%s %s: %d tokens\n", event->text, event->error, (int)event->n_generated);
    pthread_mutex_lock(&mutex);
    status = strcmp(event->text, "error") == 0;
    pthread_cond_signal(&has_ended);
    pthread_mutex_unlock(&mutex);
  }
}

/* Appends to a JSON string: quotes, backslashes and control characters are escaped. 0 if it is too long. */
static int append_json(char *into, size_t n_max, const char *text) {
  size_t n = strlen(into);
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (n + 8 > n_max) return 0;
    if (c < 0x20 || c == '"' || c == '\\') {
      n += (size_t)snprintf(into + n, n_max - n, "\\u%04x", c);
    } else {
      into[n++] = *text;
      into[n] = '\0';
    }
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf TEXT\n", argv[0]);
    return 2;
  }
  char request[65536] = "{\"max_tokens\": 64, \"temperature\": 0, \"prompt\": \"";
  if (!append_json(request, sizeof(request) - 4, argv[2])) {
    fprintf(stderr, "the text is too long for this example\n");
    return 2;
  }
  strcat(request, "\"}");
  slipstream_engine *engine = slipstream_open(argv[1], NULL);
  if (engine == NULL || slipstream_generate(engine, request, on_event, NULL) < 0) {
    fprintf(stderr, "%s\n", slipstream_last_error());
    slipstream_close(engine);
    return 1;
  }
  pthread_mutex_lock(&mutex);
  while (status < 0) pthread_cond_wait(&has_ended, &mutex);
  pthread_mutex_unlock(&mutex);
  slipstream_close(engine);
  return status;
}
