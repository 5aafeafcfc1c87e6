// What is sent to the server of a conversation.
//
// Errors: a text for people, where something the user wrote cannot be sent.
import { type Conversation, EFFORTS, type FileSearch, type Message, type Sampling, type Thinking } from './types.ts';

function messageOf(message: Message): object {
  if (message.role === 'tool') {
    return { role: 'tool', tool_call_id: message.call_id, content: message.content };
  }
  if (message.role === 'user') return { role: 'user', content: message.content };
  return {
    role: 'assistant',
    content: message.content || (message.calls ? null : ''),
    ...(message.reasoning && { reasoning_content: message.reasoning }),
    ...(message.calls && {
      tool_calls: message.calls.map((call) => ({
        id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments } })),
    }),
  };
}

// What is wrong with JSON that the user wrote; null: nothing, or there is none.
function jsonError(text: string, what: string, check: (value: unknown) => string | null): string | null {
  if (!text.trim()) return null;
  try {
    return check(JSON.parse(text));
  } catch (error) {
    return `${what} not JSON: ${(error as Error).message}`;
  }
}

// Why it cannot be sent; null if it can.
export const toolsError = (text: string) => jsonError(text, 'Tools are', (tools) => {
  if (!Array.isArray(tools)) return 'Tools must be a JSON array: [{"type": "function", …}]';
  const wrong = tools.findIndex((tool) => typeof tool?.function?.name !== 'string');
  return wrong < 0 ? null : `Tool ${wrong + 1} has no "function" with a "name"`;
});

// The same of a schema that answers are to meet.
export const schemaError = (text: string) => jsonError(text, 'The schema is', (schema) => {
  const is_object = typeof schema === 'object' && schema !== null && !Array.isArray(schema);
  return is_object ? null : 'A schema must be a JSON object: {"type": "object", …}';
});

const EFFORT_NAMES: readonly string[] = EFFORTS;
function thinkingOf(thinking: Thinking): object {
  if (EFFORT_NAMES.includes(thinking)) return { reasoning_effort: thinking };
  return thinking ? { chat_template_kwargs: { enable_thinking: thinking === 'on' } } : {};
}

function samplingOf(defaults: Sampling, own: Sampling): Record<string, number> {
  const fields: Record<string, number> = {};
  for (const name of Object.keys(defaults) as (keyof Sampling)[]) {
    const text = own[name].trim() || defaults[name].trim();
    if (text) fields[name] = Number(text);
  }
  return fields;
}

// Nothing is said of chats where nobody chose: a server may search for all of them. What earlier
// messages were given stays when the search is turned off (a budget of 0), as the server has it cached.
function foldersOf(files: FileSearch, messages: Message[]): object | false {
  const { is_on, project } = files;
  const budget = is_on ? files.budget.trim() : '0';
  if (!is_on && !messages.some(({ citations }) => citations)) return false;
  return { ...(project && { project }), ...(budget && { budget: Number(budget) }) };
}

function retrievalOf({ id, files, attached = [] }: Conversation, said: Message[]) {
  if (attached.length === 0) return files && foldersOf(files, said);
  if (!files) return { chat: id };
  if (!files.is_on) return { chat: id, project: false };
  return { chat: id, project: '', ...foldersOf(files, said) };
}

// goes_on: the last message, an answer, is continued instead of answered.
export function requestOf(conversation: Conversation, defaults: Sampling, goes_on = false): object {
  const schema = goes_on ? '' : conversation.schema?.trim() ?? '';
  const error = toolsError(conversation.tools) ?? schemaError(schema);
  if (error) throw new Error(error);
  const said = conversation.messages.filter((message) =>
    message.role !== 'assistant' || message.content || message.reasoning || message.calls);
  const system = conversation.system.trim();
  const retrieval = retrievalOf(conversation, said);
  return {
    ...(conversation.model && { model: conversation.model }),
    messages: [
      ...(system ? [{ role: 'system', content: system }] : []),
      ...said.map(messageOf),
    ],
    ...(conversation.tools.trim() && { tools: JSON.parse(conversation.tools) }),
    ...(schema && { response_format: {
      type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: JSON.parse(schema) } } }),
    ...(goes_on && { continue_final_message: true }),
    ...thinkingOf(conversation.thinking),
    ...(retrieval !== undefined && { retrieval }),
    ...samplingOf(defaults, conversation.sampling),
  };
}
