/**
 * A question of an MCP server on a terminal. Every line with text of the server begins with a mark, so that it cannot
 * pass as a line of Reveille.
 */
import { createInterface } from 'node:readline/promises';
import { fullyEscaped } from '../../kit/text/hidden-characters.ts';
import { quoted } from '../../kit/text/visible.ts';
import {
  checkContent,
  type FieldValue,
  type QuestionAnswer,
  type QuestionField,
  type QuestionView,
  typedValue,
} from '../../wire/question.ts';
import type { CliContext } from '../context.ts';

const LIMITS: Readonly<Record<QuestionField['kind'], string>> = {
  ...{ text: 'text', number: 'number', integer: 'whole number', boolean: 'yes or no' },
  ...{ choice: 'one of these', choices: 'any of these, separated by commas' },
};

function fieldLines(field: QuestionField): string[] {
  const { name, kind, title, description, required, options = [], format, min, max } = field;
  const range = [min === undefined ? '' : `at least ${min}`, max === undefined ? '' : `at most ${max}`].filter(Boolean);
  const limits = [format ?? LIMITS[kind], ...range, required ? 'required' : 'optional'].join(', ');
  const preset = field.default === undefined ? [] : [`default: ${String(field.default)}`];
  return [
    `A value for ${JSON.stringify(fullyEscaped(name))} (${limits}):`,
    ...quoted([title, ...(description === undefined ? [] : [description]), ...preset].join('\n')),
    ...options.flatMap(({ value, title: shown }, at) =>
      quoted(`${at + 1}. ${value}${shown === value ? '' : ` (${shown})`}`),
    ),
  ];
}

export function renderQuestion({ server, tool, asked, question_id, expires_at }: QuestionView): string[] {
  const head = [
    `The MCP server "${server}" asks you, for its tool ${JSON.stringify(fullyEscaped(tool))}. This is not a question of Reveille, and the server gets your answer:`,
    ...quoted(asked.message),
  ];
  const body =
    asked.mode === 'url'
      ? [
          `It wants you to open an address at the host ${asked.host}. Nothing opens it for you. The whole address:`,
          ...quoted(asked.url),
        ]
      : asked.fields.flatMap(fieldLines);
  return [...head, ...body, `Question ${question_id}, until ${expires_at}.`];
}

export type Answered = QuestionAnswer | 'later';

/**
 * Shows a question and asks for the values.
 *
 * @param withdrawn aborts when the question no longer waits
 * @returns `later` if the user leaves the question open, or the input ends
 */
export async function askForAnswer(
  { out, process }: CliContext,
  question: QuestionView,
  withdrawn?: AbortSignal,
): Promise<Answered> {
  for (const line of renderQuestion(question)) out.line(line);
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new Promise<undefined>((resolve) => reader.once('close', () => resolve(undefined)));
  const ask = async (prompt: string): Promise<string | undefined> => {
    if (withdrawn?.aborted) return undefined;
    const read = reader.question(prompt, withdrawn ? { signal: withdrawn } : {});
    return Promise.race([read.catch(() => undefined), closed]);
  };
  try {
    const { asked } = question;
    const isForm = asked.mode === 'form';
    const start = (
      await ask(isForm ? 'Answer it? yes, no, Enter for later: ' : 'Opened it? yes, no, Enter for later: ')
    )
      ?.trim()
      .toLowerCase();
    if (start === 'n' || start === 'no') return { action: 'decline' };
    if (start !== 'y' && start !== 'yes') return 'later';
    if (!isForm) return { action: 'accept' };
    const content: Record<string, FieldValue> = {};
    for (const field of asked.fields) {
      for (;;) {
        const typed = await ask(`${fullyEscaped(field.name)}: `);
        if (typed === undefined) return 'later';
        const value = typedValue(field, typed);
        const checked = checkContent([field], value === undefined ? {} : { [field.name]: value });
        if ('content' in checked) {
          Object.assign(content, checked.content);
          break;
        }
        out.line(fullyEscaped(checked.problems.join('; ')));
      }
    }
    const send = (await ask(`Send this to the server "${question.server}"? yes, no: `))?.trim().toLowerCase();
    return send === 'y' || send === 'yes' ? { action: 'accept', content } : 'later';
  } finally {
    reader.close();
  }
}
