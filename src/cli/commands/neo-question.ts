/** `reveille neo question list` and `answer`: the questions of MCP servers to the user. */
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type FieldValue, type QuestionAnswer, type QuestionView, typedValue } from '../../wire/question.ts';
import { personClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { askForAnswer, renderQuestion } from '../screens/question-screen.ts';

export type QuestionFlags = { decline?: boolean; done?: boolean; router?: string };

const clientOf = (context: CliContext, { router }: QuestionFlags) =>
  personClient(
    router === undefined ? context : { ...context, settings: { ...context.settings, REVEILLE_URL: router } },
  );

export async function listQuestions(context: CliContext, flags: QuestionFlags): Promise<void> {
  const questions = await clientOf(context, flags).questions();
  const lines = questions.flatMap((question) => ['', ...renderQuestion(question)]).slice(1);
  context.out.result({ questions }, lines.length === 0 ? ['No questions wait for an answer.'] : lines);
}

/** The values of `name=value` words. @throws UsageError */
function contentOf({ asked }: QuestionView, words: readonly string[]): Record<string, FieldValue> {
  if (asked.mode === 'url') throw new UsageError('this question has an address and no values; use --done or --decline');
  const entries = words.map((word): [string, FieldValue] => {
    const at = word.indexOf('=');
    const field = asked.fields.find(({ name }) => name === word.slice(0, at));
    if (at < 1 || field === undefined) {
      const names = asked.fields.map(({ name }) => oneLine(name)).join(', ');
      throw new UsageError(`a value must be name=value (got ${JSON.stringify(word)}); the names are ${names}`);
    }
    return [field.name, typedValue(field, word.slice(at + 1)) ?? ''];
  });
  return Object.fromEntries(entries);
}

async function answerFor(
  context: CliContext,
  { decline = false, done = false }: QuestionFlags,
  question: QuestionView,
  words: readonly string[],
): Promise<QuestionAnswer> {
  if ([decline, done, words.length > 0].filter(Boolean).length > 1)
    throw new UsageError('values, --done and --decline exclude each other');
  if (decline) return { action: 'decline' };
  if (done && question.asked.mode === 'form') throw new UsageError('this question is a form; give its values');
  if (done) return { action: 'accept' };
  if (words.length > 0) return { action: 'accept', content: contentOf(question, words) };
  if (context.process.stdin.isTTY !== true)
    throw new UsageError('give the values as name=value, or --done for an address, or --decline');
  const answer = await askForAnswer(context, question);
  if (answer === 'later') throw new ReveilleError('forbidden', 'nothing was sent; the question still waits');
  return answer;
}

export async function answerQuestion(
  context: CliContext,
  flags: QuestionFlags,
  id: string,
  words: readonly string[],
): Promise<void> {
  const client = clientOf(context, flags);
  const question = (await client.questions()).find(({ question_id }) => question_id === id);
  if (question === undefined)
    throw new ReveilleError('not_found', `no question ${oneLine(id)} waits; see: reveille neo question list`);
  const answer = await answerFor(context, flags, question, words);
  const view = await client.answerQuestion(id, answer);
  const what = answer.action === 'accept' ? 'Answered' : 'Declined';
  context.out.result(view, [`${what}. The turn of your agent goes on.`]);
}
