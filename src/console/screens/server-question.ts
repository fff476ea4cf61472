/**
 * Questions of MCP servers in a conversation. Their text is marked as text of the server, the values go to the server,
 * and only the user opens an address.
 */
import { html, raw } from 'hono/html';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import {
  type FieldValue,
  type QuestionAnswer,
  type QuestionField,
  type QuestionView,
  typedValue,
} from '../../wire/question.ts';
import { csrfField } from '../page.ts';
import { type Redirect, type RequestContext, there } from '../request-context.ts';
import { block, controlNote, type Html, NOTHING, shown } from '../shown.ts';
import { time } from '../times.ts';

const INPUT_TYPES: Partial<Record<QuestionField['kind'], string>> = { number: 'number', integer: 'number' };
const FORMAT_TYPES = { email: 'email', uri: 'url', date: 'date', 'date-time': 'text' } as const;

const isPreset = (field: QuestionField, value: string) =>
  Array.isArray(field.default) ? field.default.includes(value) : field.default === value;

function control(field: QuestionField, id: string): Html {
  const { kind, required, format, options = [] } = field;
  const needed = required ? raw(' required') : '';
  if (kind === 'boolean') {
    const choice = (value: boolean, text: string) =>
      html`<option value="${value}"${field.default === value ? raw(' selected') : ''}>${text}</option>`;
    return html`<select id="${id}" name="${id}"${needed}><option value=""></option>${choice(true, 'yes')}${choice(false, 'no')}</select>`;
  }
  if (kind === 'choice' || kind === 'choices') {
    const rows = options.map(
      ({ value, title }) =>
        html`<option value="${value}"${isPreset(field, value) ? raw(' selected') : ''}>${shown(title)}</option>`,
    );
    const none = kind === 'choice' ? html`<option value=""></option>` : NOTHING;
    return html`<select id="${id}" name="${id}"${kind === 'choices' ? raw(' multiple') : ''}${needed}>${none}${rows}</select>`;
  }
  const type = INPUT_TYPES[kind] ?? (format === undefined ? 'text' : FORMAT_TYPES[format]);
  const step = kind === 'number' ? raw(' step="any"') : '';
  const value = field.default === undefined ? '' : String(field.default);
  return html`<input id="${id}" name="${id}" type="${type}"${step} value="${value}" autocomplete="off"${needed}>${controlNote(value)}`;
}

const idOf = (question: QuestionView, at: number) => `q-${question.question_id}-${at}`;

/** The form of one question. @param action the path that the answer is sent to */
export function serverQuestion(question: QuestionView, { session, here }: RequestContext, action: string): Html {
  const { server, tool, asked, question_id, expires_at } = question;
  const body =
    asked.mode === 'url'
      ? html`<p>It wants you to open an address at the host <strong>${shown(asked.host)}</strong>. Nothing opens it for you:</p>
<p class="address"><a href="${asked.url}" target="_blank" rel="noopener noreferrer">${shown(asked.url)}</a></p>`
      : html`${asked.fields.map((field, at) => {
          const id = idOf(question, at);
          const hint = field.description === undefined ? NOTHING : block(field.description, 'hint');
          return html`<div class="field"><label for="${id}">${shown(field.title)}${field.required ? '' : ' (optional)'}</label>${control(field, id)}${hint}</div>`;
        })}`;
  const accept = asked.mode === 'url' ? 'I have opened it' : 'Send to the server';
  return html`<section class="ask" id="asked-${question_id}" aria-label="Question of a server" tabindex="-1">
<h2>The server “${shown(server)}” asks you</h2>
<p class="from">For its tool <code>${shown(tool)}</code>. This is not a question of Reveille; the server gets your answer. Expires ${time(expires_at, here)}</p>
${block(asked.message)}
<form method="post" action="${action}" class="answer">${csrfField(session.csrf)}<input type="hidden" name="question" value="${question_id}">
${body}
<div class="actions"><button name="do" value="accept" class="primary">${accept}</button><button name="do" value="decline" class="danger" formnovalidate>Decline</button></div></form>
</section>`;
}

function contentOf({ form }: Pick<RequestContext, 'form'>, question: QuestionView): Record<string, FieldValue> {
  const { asked } = question;
  if (asked.mode === 'url') return {};
  const entries = asked.fields.flatMap((field, at): [string, FieldValue][] => {
    const typed = form.getAll(idOf(question, at)).filter((text) => text !== '');
    if (typed.length === 0) return [];
    if (field.kind === 'choices') return [[field.name, typed]];
    const value = typedValue(field, typed[0]!);
    return value === undefined ? [] : [[field.name, value]];
  });
  return Object.fromEntries(entries);
}

/** `POST chat/{id}/question`. */
export async function answerServerQuestion(context: RequestContext): Promise<Redirect> {
  const { backend, form, params, session } = context;
  const id = params.id!;
  const agent = there(backend.agent);
  const wanted = form.get('question');
  try {
    const question = (await agent.questions(id)).find(({ question_id }) => question_id === wanted);
    if (!question) throw new ReveilleError('not_found', 'this question no longer waits for an answer');
    const isAccepted = form.get('do') === 'accept';
    const isForm = question.asked.mode === 'form';
    const answer: QuestionAnswer = isAccepted
      ? { action: 'accept', ...(isForm && { content: contentOf(context, question) }) }
      : { action: 'decline' };
    await agent.answerQuestion(question.question_id, answer);
    session.messages.success(isAccepted ? 'Answered.' : 'Declined.');
  } catch (thrown) {
    session.messages.error(toReveilleError(thrown).message);
  }
  return { to: `chat/${encodeURIComponent(id)}` };
}
