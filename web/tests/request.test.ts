// What is sent of a conversation.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestOf, schemaError, toolsError } from '../src/chat/request.ts';
import { type Message, NO_FILES, NO_SAMPLING, newConversation, openCalls, titleOf } from '../src/chat/types.ts';

const CALL = { id: 'c1', name: 'lookup_name', arguments: '{"first":"amber"}' };
const user: Message = { id: '1', role: 'user', content: 'Look it up' };
const calling: Message = { id: '2', role: 'assistant', content: '', calls: [CALL] };
const result: Message = { id: '3', role: 'tool', content: '{"name":"amber lantern"}', call_id: 'c1' };

test('calls and results go back as the API has them', () => {
  const conversation = { ...newConversation('needle'), messages: [user, calling, result] };
  assert.deepEqual(requestOf(conversation, NO_SAMPLING), {
    model: 'needle',
    messages: [
      { role: 'user', content: 'Look it up' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function',
        function: { name: 'lookup_name', arguments: '{"first":"amber"}' } }] },
      { role: 'tool', tool_call_id: 'c1', content: '{"name":"amber lantern"}' },
    ],
  });
});

test('own sampling goes before the defaults, and zero is a value', () => {
  const conversation = { ...newConversation(''), thinking: 'on' as const, system: ' Be brief ',
    sampling: { ...NO_SAMPLING, temperature: '0' }, messages: [user] };
  assert.deepEqual(requestOf(conversation, { ...NO_SAMPLING, temperature: '1', top_p: '0.5' }), {
    messages: [{ role: 'system', content: 'Be brief' }, { role: 'user', content: 'Look it up' }],
    chat_template_kwargs: { enable_thinking: true },
    temperature: 0,
    top_p: 0.5,
  });
});

test('an answer that never came is not sent', () => {
  const empty: Message = { id: '4', role: 'assistant', content: '', note: 'Stopped' };
  const request = requestOf({ ...newConversation(''), messages: [user, empty, user] }, NO_SAMPLING);
  assert.equal((request as { messages: object[] }).messages.length, 2);
});

test('what was chosen of the files is said, and nothing where nobody chose', () => {
  const sent = (files?: object) => {
    const conversation = { ...newConversation(''), messages: [user] };
    return requestOf({ ...conversation, ...(files && { files: { ...NO_FILES, ...files } }) },
      NO_SAMPLING) as { retrieval?: object };
  };
  assert.ok(!('retrieval' in sent()));
  assert.equal(sent({ project: '/home/ann/project', budget: '500' }).retrieval, false);
  assert.deepEqual(sent({ is_on: true }).retrieval, {});
  assert.deepEqual(sent({ is_on: true, project: '/home/ann/project', budget: ' 500' }).retrieval,
    { project: '/home/ann/project', budget: 500 });
});

test('files of the chat are asked for, beside folders that were chosen', () => {
  const attached = [{ name: 'a.txt', chunks: 1 }];
  const sent = (files?: object) => {
    const conversation = { ...newConversation(''), id: 'c1', messages: [user], attached };
    return (requestOf({ ...conversation, ...(files && { files: { ...NO_FILES, ...files } }) },
      NO_SAMPLING) as { retrieval?: object }).retrieval;
  };
  assert.deepEqual(sent(), { chat: 'c1' });
  assert.deepEqual(sent({ project: '/p' }), { chat: 'c1', project: false });
  assert.deepEqual(sent({ is_on: true }), { chat: 'c1', project: '' });
  assert.deepEqual(sent({ is_on: true, project: '/p', budget: '500' }),
    { chat: 'c1', project: '/p', budget: 500 });
  const none = requestOf({ ...newConversation(''), messages: [user], attached: [] }, NO_SAMPLING);
  assert.ok(!('retrieval' in none));
});

test('what was found for earlier messages stays when the search is turned off', () => {
  const answer: Message = { id: '5', role: 'assistant', content: 'It waits.',
    citations: [{ url: 'file:///a.md#L1-L3', title: 'a.md:1-3', start: 0, end: 0 }] };
  const files = { ...NO_FILES, project: '/home/ann/project', budget: '500' };
  const request = requestOf({ ...newConversation(''), messages: [user, answer, user], files },
    NO_SAMPLING) as { retrieval: object };
  assert.deepEqual(request.retrieval, { project: '/home/ann/project', budget: 0 });
});

test('what an answer cites is kept here and not sent back', () => {
  const answer: Message = { id: '5', role: 'assistant', content: 'It waits.',
    citations: [{ url: 'file:///a.md#L1-L3', title: 'a.md:1-3', start: 0, end: 0 }] };
  const request = requestOf({ ...newConversation(''), messages: [user, answer] }, NO_SAMPLING);
  assert.deepEqual((request as { messages: object[] }).messages[1],
    { role: 'assistant', content: 'It waits.' });
});

test('tools that cannot be sent are told', () => {
  assert.equal(toolsError(' '), null);
  assert.equal(toolsError('[{"type":"function","function":{"name":"f"}}]'), null);
  assert.match(toolsError('[{')!, /not JSON/);
  assert.match(toolsError('{}')!, /array/);
  assert.match(toolsError('[{"function":{"name":"f"}},{"name":"g"}]')!, /Tool 2/);
  assert.throws(() => requestOf({ ...newConversation(''), tools: '[{' }, NO_SAMPLING), /not JSON/);
});

test('a call is open until it has its result', () => {
  assert.deepEqual(openCalls([user, calling]), [CALL]);
  assert.deepEqual(openCalls([user, calling, result]), []);
  assert.deepEqual(openCalls([user]), []);
});

test('a chat is called after its first line', () => {
  const conversation = { ...newConversation(''), messages: [{ ...user, content: ' One\ntwo' }] };
  assert.equal(titleOf(conversation), 'One');
  assert.equal(titleOf({ ...conversation, title: 'Mine' }), 'Mine');
  assert.equal(titleOf(newConversation('')), 'New chat');
});

test('a schema, an effort and an answer that goes on', () => {
  const cut: Message = { id: '2', role: 'assistant', content: 'It is', reasoning: 'Hm', is_cut: true };
  const sent = (change: object, goes_on = false) =>
    requestOf({ ...newConversation(''), messages: [user, cut], ...change }, NO_SAMPLING, goes_on);
  assert.deepEqual(sent({ thinking: 'low', schema: ' {"type": "object"} ' }), {
    messages: [{ role: 'user', content: 'Look it up' },
      { role: 'assistant', content: 'It is', reasoning_content: 'Hm' }],
    response_format: { type: 'json_schema',
      json_schema: { name: 'answer', strict: true, schema: { type: 'object' } } },
    reasoning_effort: 'low',
  });
  // What goes on was not begun by a schema, which the server would refuse.
  assert.deepEqual(Object.keys(sent({ schema: '{"type": "object"}' }, true)), ['messages', 'continue_final_message']);
  assert.throws(() => sent({ schema: '{' }), /schema is not JSON/);
  assert.throws(() => sent({ schema: '[]' }), /must be a JSON object/);
  assert.equal(schemaError(''), null);
});
