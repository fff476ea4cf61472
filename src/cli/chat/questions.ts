/** Questions of MCP servers inside a conversation. */
import type { NeoClient } from '../../agents/neo/client.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { QuestionView } from '../../wire/question.ts';
import type { CliContext } from '../context.ts';
import { askForAnswer } from '../screens/question-screen.ts';

const howElse = ({ question_id }: QuestionView) => `answer it with: reveille neo question answer ${question_id}`;

/** @returns a sentence about the outcome; empty when the question was withdrawn */
export async function answerQuestionInline(
  context: CliContext,
  client: NeoClient,
  question: QuestionView,
  withdrawn?: AbortSignal,
): Promise<string> {
  const answer = await askForAnswer(context, question, withdrawn);
  if (withdrawn?.aborted) return '';
  if (answer === 'later') return `not answered; the question still waits: ${howElse(question)}`;
  try {
    await client.answerQuestion(question.question_id, answer);
    return answer.action === 'accept' ? 'Answered' : 'Declined';
  } catch (error) {
    if (error instanceof ReveilleError) return `your answer was not accepted: ${error.message}`;
    throw error;
  }
}

/** A line about a question, for output without a terminal. */
export const questionRemark = (question: QuestionView) =>
  `the server "${question.server}" asks you something; ${howElse(question)}`;
