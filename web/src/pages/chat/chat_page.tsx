// The conversation that is open, and the list of all.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type ServedModel, servedModels } from '../../api/models.ts';
import { ApiFailure } from '../../api/http.ts';
import { running, say, stop } from '../../chat/answering.ts';
import { attachFiles, isAttaching } from '../../chat/attaching.ts';
import { versionsOf } from '../../chat/branches.ts';
import { add, find, storageProblem, update } from '../../chat/store.ts';
import { type Conversation, NO_FILES, newConversation, openCalls, titleOf } from '../../chat/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icons.tsx';
import { Problem } from '../../parts/problem.tsx';
import { go } from '../../place.ts';
import { set, settings } from '../../settings.ts';
import { startChat } from '../../shortcuts.ts';
import { AttachButton, AttachmentList, useAttachmentLimits, useDrop } from './attachments.tsx';
import { ChatSettings } from './chat_settings.tsx';
import { Composer } from './composer.tsx';
import { ContextMeter } from './context_meter.tsx';
import { ConversationList } from './conversation_list.tsx';
import { FilesSwitch, useFolders } from './files_switch.tsx';
import { Answer, UserMessage } from './message_view.tsx';
import { Waiting } from './waiting.tsx';

const drafts = signal<Record<string, string>>({}); // by conversation, until it is sent

// The conversation in the address, or one that begins when something is done with it.
function opened(id: string): Conversation {
  const found = find(id);
  if (found) return found;
  const fresh = newConversation(settings.value.model);
  add(fresh);
  drafts.value = { ...drafts.value, [id]: '', [fresh.id]: drafts.value[id] ?? '' };
  go('chat', fresh.id);
  return fresh;
}

function Messages({ conversation }: { conversation: Conversation }) {
  const { id, messages } = conversation;
  const results = new Map(messages.flatMap((message) =>
    message.call_id ? [[message.call_id, message.content] as const] : []));
  const is_running = running.value.has(id);
  const versions = versionsOf(conversation);
  const last_answer = messages.findLast((message) => message.role === 'assistant');
  const end = messages.at(-1);
  return (
    <>
      {messages.map((message) => {
        const props = {
          conversation_id: id, message, results, is_running,
          versions: versions.get(message.id), is_end: message === end,
          is_last_answer: message === last_answer };
        if (message.role === 'user') return <UserMessage key={message.id} {...props} />;
        if (message.role === 'assistant') return <Answer key={message.id} {...props} />;
        return null; // shown in the card of its call
      })}
      {is_running && end?.role !== 'assistant' && <Waiting conversation_id={id} />}
    </>
  );
}

// Follows what is written, unless the reader has scrolled away.
function Scroll({ conversation }: { conversation: Conversation }) {
  const box = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const [is_at_end, setAtEnd] = useState(true);
  const follows = useRef(true);
  follows.current = is_at_end;
  const toEnd = () => { // what is taken off the page changes its size, too
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  // Also when it was asked: who sends wants to see the answer.
  const n_asked = conversation.messages.filter(({ role }) => role === 'user').length;
  useEffect(() => { setAtEnd(true); toEnd(); }, [conversation.id, n_asked]);
  useEffect(() => { // what is written grows, and so does what is set and coloured later
    const observer = new ResizeObserver(() => { if (follows.current) toEnd(); });
    observer.observe(column.current!);
    return () => observer.disconnect();
  }, []);
  const top = useRef(0);
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = box.current!;
    // Text that came between scrolling and this event is no reader who goes up.
    if (scrollHeight - scrollTop - clientHeight < 80) setAtEnd(true);
    else if (scrollTop < top.current) setAtEnd(false);
    top.current = scrollTop;
  };
  return (
    <div class="scroll" ref={box} onScroll={onScroll} tabIndex={0} role="region"
      aria-label="Conversation">
      <div class="column" ref={column}><Messages conversation={conversation} /></div>
      {!is_at_end && (
        <button type="button" class="round jump" aria-label="To the end" onClick={toEnd}>
          <Icon name="down" />
        </button>
      )}
    </div>
  );
}

function Welcome({ problem, reload }: { problem: ApiFailure | null; reload: () => void }) {
  return (
    <div class="welcome">
      <img src="/icon.svg" alt="" width="56" height="56" />
      <h2>What shall we look into?</h2>
      <p class="faint">Answers are computed by your server. Chats stay on this device.</p>
      {problem &&
        <Problem message={problem.message} needs_key={problem.status === 401} onRetry={reload} />}
    </div>
  );
}

function useServedModels() {
  const [models, setModels] = useState<ServedModel[]>([]);
  const [problem, setProblem] = useState<ApiFailure | null>(null);
  const load = () => void servedModels().then(
    (found) => { setModels(found); setProblem(null); },
    (error) => setProblem(error as ApiFailure));
  useEffect(load, [settings.value.api_key]);
  return { models, problem, load };
}

export function ChatPage({ id }: { id: string }) {
  const [shows, setShows] = useState<'' | 'list' | 'settings'>('');
  const { models, problem, load } = useServedModels();
  const folders = useFolders();
  const limits = useAttachmentLimits();
  const conversation = find(id);
  const is_running = running.value.has(id);
  const text = drafts.value[id] ?? '';
  const setDraft = (of: string, value: string) => {
    drafts.value = { ...drafts.value, [of]: value };
  };
  const send = () => {
    const { id: to } = opened(id);
    setDraft(id, '');
    setDraft(to, '');
    void say(to, text.trim());
  };
  const onFiles = limits && ((files: File[]) => attachFiles(opened(id).id, files, limits));
  const drop = useDrop(onFiles);
  const chooseModel = (model: string) => {
    set({ model });
    if (conversation) update(id, { model });
  };
  const model = conversation?.model || settings.value.model || models[0]?.id || '';
  const list = (
    <ConversationList current={id} onOpen={() => setShows('')}
      onNew={() => { setShows(''); startChat(); }} />
  );
  return (
    <div class="chat">
      <aside class="side" aria-label="Chats">{list}</aside>
      <section class="stage" {...drop.handlers}>
        {drop.is_over && <p class="drop">Drop files to attach them to this chat</p>}
        <header class="bar">
          <button type="button" class="quiet square only-narrow" aria-label="Chats"
            onClick={() => setShows('list')}><Icon name="menu" /></button>
          <h1 class="title">{conversation ? titleOf(conversation) : 'New chat'}</h1>
          {models.length > 0 && (
            <select aria-label="Model" class="model" value={model}
              onChange={(event) => chooseModel(event.currentTarget.value)}>
              {!models.some((one) => one.id === model) && <option value={model}>{model}</option>}
              {models.map((one) => <option key={one.id} value={one.id}>{one.id}</option>)}
            </select>
          )}
          <button type="button" class="quiet square" aria-label="Settings of this chat"
            onClick={() => { opened(id); setShows('settings'); }}><Icon name="settings" /></button>
        </header>
        {storageProblem.value && <Problem message={storageProblem.value} />}
        {conversation && conversation.messages.length > 0
          ? <Scroll conversation={conversation} />
          : <Welcome problem={problem} reload={load} />}
        <Composer text={text} is_running={is_running}
          is_waiting_for_tool={!is_running && openCalls(conversation?.messages ?? []).length > 0}
          is_attaching={isAttaching(id)} onPastedFiles={onFiles}
          onText={(value) => setDraft(id, value)} onSend={send} onStop={() => stop(id)}
          above={conversation &&
            <AttachmentList chat={id} attached={conversation.attached ?? []} />}>
          {onFiles && <AttachButton onFiles={onFiles} />}
          <FilesSwitch folders={folders} files={conversation?.files ?? NO_FILES}
            onChange={(files) => void update(opened(id).id, { files })} />
          {conversation && (
            <ContextMeter conversation={conversation} model={models.find((one) => one.id === model)} />
          )}
        </Composer>
      </section>
      {shows === 'list' && (
        <Dialog title="Chats" kind="sheet" onClose={() => setShows('')}>{list}</Dialog>
      )}
      {shows === 'settings' && conversation && (
        <ChatSettings conversation={conversation} has_files={folders.length > 0}
          onClose={() => setShows('')} />
      )}
    </div>
  );
}
