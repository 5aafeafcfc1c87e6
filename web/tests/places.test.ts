// Places in files, and the words that they were found by.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lastPart, linesOf, marked, placeOf, wordsOf } from '../src/text/places.ts';

const found = (text: string, words: string[]) =>
  marked(text, words).filter((part) => part.is_found).map((part) => part.text);

test('a citation leads to lines of a file, or nowhere', () => {
  assert.deepEqual(placeOf('file:///home/ann/a%20b%23.c#L3-L9'),
    { path: '/home/ann/a b#.c', first_line: 3, last_line: 9 });
  assert.deepEqual(placeOf('file:///a.md#L7'), { path: '/a.md', first_line: 7, last_line: 7 });
  assert.deepEqual(placeOf('/slipstream/attachments/c-1_/a%20b%23.md#L3-L9'), {
    path: 'a b#.md', address: '/slipstream/attachments/c-1_/a%20b%23.md', first_line: 3, last_line: 9 });
  for (const url of ['/slipstream/attachments/c/a/b#L1', '/slipstream/attachments/../a#L1',
    'https://host/slipstream/attachments/c/a#L1', '//host/slipstream/attachments/c/a#L1', 'file:///a.md', 'https://host/a#L1-L2', 'file://host/a#L1', 'file:///%zz#L1',
    'javascript:alert(1)#L1-L2']) {
    assert.equal(placeOf(url), null, url);
  }
});

test('names are short', () => {
  assert.equal(lastPart('/home/ann/project'), 'project');
  assert.equal(lastPart('/home/ann/project/'), 'project');
  assert.equal(lastPart('/'), '/');
  assert.equal(linesOf({ first_line: 3, last_line: 9 }), '3-9');
  assert.equal(linesOf({ first_line: 3, last_line: 3 }), '3');
});

test('words are taken from why a place was found', () => {
  assert.deepEqual(wordsOf('has scheduler, pick, next task'), ['scheduler', 'pick', 'next', 'task']);
  assert.deepEqual(wordsOf('defines it; has pick_next; the file has changed since'), ['pick', 'next']);
  assert.deepEqual(wordsOf('defines it'), []);
});

test('words are marked in their forms and as beginnings of names', () => {
  assert.deepEqual(found('It sleeps. Sleeping beauty asleep', ['sleeping']), ['sleeps', 'Sleeping']);
  assert.deepEqual(found('a = pick_next(maxBody)', ['pick', 'max']), ['pick', 'maxBody']);
  assert.deepEqual(found('if (a) of', ['of']), [], 'too short to tell anything');
  assert.deepEqual(found('nothing', []), []);
});

test('marking leaves the text as it is', () => {
  const text = 'One grüße <b>two</b>\n\tgrüßen 🌊 end';
  const parts = marked(text, ['grüße', 'end']);
  assert.equal(parts.map((part) => part.text).join(''), text);
  assert.deepEqual(found(text, ['grüße', 'end']), ['grüße', 'grüßen', 'end']);
});
