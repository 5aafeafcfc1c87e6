// Requests to the server that this page came from.
//
// Errors: ApiFailure, with a text for people; an abort stays an AbortError.

export class ApiFailure extends Error {
  readonly status: number; // 0: the server was not reached

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

let apiKey = '';
export function setApiKey(key: string) {
  apiKey = key;
}

const WANTS_KEY = 'The server does not accept this API key';
const WANTS_ANY_KEY = 'The server asks for an API key';

export function authorize(headers: Headers) {
  if (apiKey) headers.set('Authorization', `Bearer ${apiKey}`);
}

// text: of the answer.
export function failureOf(status: number, text: string): ApiFailure {
  if (status === 401) return new ApiFailure(401, apiKey ? WANTS_KEY : WANTS_ANY_KEY);
  try {
    const message = JSON.parse(text).error?.message;
    if (typeof message === 'string') return new ApiFailure(status, message);
  } catch {
    // Not the server's own words: perhaps a proxy's.
  }
  return new ApiFailure(status, `The server answered ${status}`);
}

export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  authorize(headers);
  let response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiFailure(0, 'The server cannot be reached. Is it running?');
  }
  if (!response.ok) throw failureOf(response.status, await response.text());
  return response;
}

export function post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  return ask(path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json' },
    ...(signal && { signal }),
  });
}

// Of a route that this server may not have: null if so.
export async function askIfThere(path: string): Promise<Response | null> {
  try {
    return await ask(path);
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return null;
    throw error;
  }
}
