// Files that belong to a chat, on the server: only this chat's requests find them.
//
// Errors: ApiFailure.
import type { FileLines } from './mcp.ts';
import { ApiFailure, ask, askIfThere, authorize, failureOf } from './http.ts';

export interface Attachment {
  name: string;
  bytes: number; // of its text
  lines: number;
  chunks: number;
}

export interface AttachmentLimits {
  bytes: number; // that are taken
  bytes_max: number;
  file_bytes_max: number;
  files_of_chat_max: number;
}

const ROUTE = '/slipstream/attachments';
const pathOf = (chat: string, name: string) => `${ROUTE}/${chat}/${encodeURIComponent(name)}`;

// null: the server keeps no attachments.
export async function attachmentLimits(): Promise<AttachmentLimits | null> {
  const response = await askIfThere(ROUTE);
  return response && ((await response.json()) as AttachmentLimits);
}

export async function listAttachments(chat: string): Promise<Attachment[]> {
  const response = await askIfThere(`${ROUTE}/${chat}`);
  return response ? ((await response.json()) as { files: Attachment[] }).files : [];
}

// fetch() does not tell when a body was sent, and what follows may take a minute.
export function attach(
  chat: string, file: File, onSent: () => void, signal: AbortSignal): Promise<Attachment> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', pathOf(chat, file.name));
    const headers = new Headers({ 'Content-Type': 'application/octet-stream' });
    authorize(headers);
    headers.forEach((value, name) => request.setRequestHeader(name, value));
    request.upload.onload = onSent;
    request.onload = () => {
      const { status, responseText } = request;
      if (status === 200) resolve(JSON.parse(responseText) as Attachment);
      else reject(failureOf(status, responseText));
    };
    request.onerror = () =>
      reject(new ApiFailure(0, 'The server cannot be reached, or it ended the connection'));
    request.onabort = () => reject(new DOMException('It was removed', 'AbortError'));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

// That it is gone already is what was wanted.
async function removeAt(path: string) {
  try {
    await ask(path, { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof ApiFailure && error.status === 404)) throw error;
  }
}
export const detach = (chat: string, name: string) => removeAt(pathOf(chat, name));
export const detachAll = (chat: string) => removeAt(`${ROUTE}/${chat}`);

// path: as a citation names it.
export async function readAttachedLines(path: string, first: number, last: number) {
  const response = await ask(`${path}?first_line=${first}&last_line=${last}`);
  return (await response.json()) as Omit<FileLines, 'project' | 'path'>;
}
