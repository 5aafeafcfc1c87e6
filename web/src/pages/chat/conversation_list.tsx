// All conversations: found, opened, renamed, deleted.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { running } from '../../chat/answering.ts';
import { forget } from '../../chat/attaching.ts';
import { conversations, search, update } from '../../chat/store.ts';
import { type Conversation, titleOf } from '../../chat/types.ts';
import { useFocus } from '../../parts/focus.ts';
import { Icon } from '../../parts/icons.tsx';
import { go } from '../../place.ts';

function Rename({ conversation, onEnd }: { conversation: Conversation; onEnd: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  // Before the next key: an effect after painting would lose the first letters of who types at once.
  useLayoutEffect(() => input.current?.select(), []);
  let is_over = false; // going away takes the focus with it
  const end = (keeps: boolean) => {
    if (is_over) return;
    is_over = true;
    if (keeps) void update(conversation.id, { title: input.current!.value.trim() });
    onEnd();
  };
  return (
    <form class="rename" onSubmit={(event) => { event.preventDefault(); end(true); }}>
      <input ref={input} aria-label="New name of the chat" defaultValue={titleOf(conversation)}
        onBlur={() => end(true)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return;
          event.stopPropagation();
          end(false);
        }} />
    </form>
  );
}

function Confirm({ onYes, onNo }: { onYes: () => void; onNo: () => void }) {
  const keep = useFocus<HTMLButtonElement>();
  return (
    <li class="confirm">
      <span>Delete this chat?</span>
      <button type="button" class="danger small" onClick={onYes}>Delete</button>
      <button type="button" class="quiet small" ref={keep} onClick={onNo}>Keep</button>
    </li>
  );
}

interface EntryProps {
  conversation: Conversation;
  is_current: boolean;
  onOpen: () => void;
}

function Entry({ conversation, is_current, onOpen }: EntryProps) {
  const [mode, setMode] = useState<'plain' | 'rename' | 'delete'>('plain');
  const title = titleOf(conversation);
  const { id } = conversation;
  if (mode === 'rename') {
    return <li><Rename conversation={conversation} onEnd={() => setMode('plain')} /></li>;
  }
  if (mode === 'delete') {
    const removeIt = () => {
      void forget([id]);
      if (is_current) go('chat');
    };
    return <Confirm onYes={removeIt} onNo={() => setMode('plain')} />;
  }
  return (
    <li class={is_current ? 'entry current' : 'entry'}>
      <a href={`#/chat/${id}`} aria-current={is_current ? 'page' : undefined} title={title}
        onClick={onOpen}>
        {running.value.has(id) && <span class="pulse" aria-label="being answered" role="img" />}
        {title}
      </a>
      <button type="button" class="quiet square" aria-label={`Rename ${title}`}
        onClick={() => setMode('rename')}><Icon name="pencil" /></button>
      <button type="button" class="quiet square" aria-label={`Delete ${title}`}
        onClick={() => setMode('delete')}><Icon name="trash" /></button>
    </li>
  );
}

interface Props {
  current: string;
  onNew: () => void;
  onOpen: () => void;
}

export function ConversationList({ current, onNew, onOpen }: Props) {
  const [query, setQuery] = useState('');
  const found = search(query, conversations.value);
  return (
    <div class="list">
      <button type="button" class="wide" onClick={onNew}><Icon name="plus" />New chat</button>
      <input type="search" id="search-chats" aria-label="Search chats" placeholder="Search chats"
        value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      <ul aria-label="Chats">
        {found.map((conversation) => (
          <Entry key={conversation.id} conversation={conversation} onOpen={onOpen}
            is_current={conversation.id === current} />
        ))}
      </ul>
      {found.length === 0 && (
        <p class="faint">{query ? 'No chat has these words' : 'Chats stay on this device'}</p>
      )}
    </div>
  );
}
