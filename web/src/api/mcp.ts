// The index of the server's folders, asked over MCP as any other agent asks it.
//
// In revision 2026-07-28, where each message stands for itself: no session is begun or kept.
//
// Errors: ApiFailure; what a tool refuses is one, too, in the tool's own words.
import { ApiFailure, ask } from './http.ts';

const REVISION = '2026-07-28';

export interface Folder {
  project: string; // its whole path
  state: 'complete' | 'being read' | 'not read yet' | 'problem';
  percent_done?: number;
  problem?: string;
}

export interface FolderStatus extends Folder {
  files: number;
  bytes: number;
  refused: Record<string, number>; // files that were not read, by reason
}

export interface Freshness {
  is_fresh: boolean;
  note: string; // what is not
}

export interface IndexStatus {
  projects: FolderStatus[];
  index: Freshness;
}

export interface Place {
  project: string;
  path: string; // in the project
  first_line: number;
  last_line: number;
  why: string;
  is_cut: boolean;
  text: string;
}

export interface Places {
  places: Place[];
  index: Freshness;
}

export interface FileLines {
  project: string;
  path: string;
  first_line: number;
  last_line: number;
  n_lines: number; // of the whole file
  is_cut: boolean;
  text: string;
}

interface Reply<Result> {
  result?: Result;
  error?: { message: string };
}

async function request<Result>(method: string, params: object, name?: string): Promise<Result> {
  const body = {
    jsonrpc: '2.0', id: 1, method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientInfo': { name: 'slipstream-web', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const response = await ask('/mcp', {
    method: 'POST',
    body: JSON.stringify(body),
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': REVISION,
      'Mcp-Method': method,
      ...(name && { 'Mcp-Name': name }),
    },
  });
  const reply = (await response.json()) as Reply<Result>;
  if (!reply.result) {
    throw new ApiFailure(response.status, reply.error?.message ?? 'The server gave no result');
  }
  return reply.result;
}

interface ToolResult {
  content: { text?: string }[];
  structuredContent: unknown;
  isError?: boolean;
}

async function call<Answer>(tool: string, given: object): Promise<Answer> {
  const result = await request<ToolResult>('tools/call', { name: tool, arguments: given }, tool);
  if (result.isError) throw new ApiFailure(200, result.content[0]?.text ?? `${tool} failed`);
  return result.structuredContent as Answer;
}

// null: the server does not offer the index.
export async function toolNames(): Promise<string[] | null> {
  try {
    const { tools } = await request<{ tools: { name: string }[] }>('tools/list', {});
    return tools.map(({ name }) => name);
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 404) return null;
    throw error;
  }
}

export const listFolders = async () =>
  (await call<{ projects: Folder[] }>('list_projects', {})).projects;

// Of an index without folders the server has no status.
export async function indexStatus(): Promise<IndexStatus> {
  if ((await listFolders()).length === 0) return { projects: [], index: { is_fresh: true, note: '' } };
  return call<IndexStatus>('index_status', {});
}

export const addFolder = (folder: string) => call<Folder>('add_project', { folder });

// project: empty means all of them.
export const searchFiles = (query: string, project: string) =>
  call<Places>('search', { query, ...(project && { project }) });

// path: a whole one.
export const readLines = (path: string, first_line: number, last_line: number) =>
  call<FileLines>('read_lines', { path, first_line, last_line });
