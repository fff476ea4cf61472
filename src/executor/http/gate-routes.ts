/** The steps that wait for a person, and their answers (contracts §6). */
import { readJson } from '../../kit/http/body.ts';
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { gateAnswerSchema } from '../../wire/executor.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { ExecutorRail } from '../rail.ts';
import { intentIdOf, nodeIdOf, refuseArguments } from './path.ts';
import { userOf } from './principal.ts';
import { EXECUTOR_ROUTES } from './routes.ts';

export function gateRoutes(app: HttpApp, rail: Pick<ExecutorRail, 'gates' | 'answer'>): void {
  serve(app, EXECUTOR_ROUTES.listGates, async (c) => {
    await refuseArguments(c);
    return sendOk(c, { pending: rail.gates(userOf(c), intentIdOf(c)) });
  });
  serve(app, EXECUTOR_ROUTES.answerGate, async (c) => {
    const [user, intentId, nodeId] = [userOf(c), intentIdOf(c), nodeIdOf(c)];
    const answer = parseOrThrow(gateAnswerSchema, await readJson(c));
    await rail.answer(user, intentId, nodeId, answer);
    return sendOk(c, { intent_id: intentId, node_id: nodeId, approved: answer.approved });
  });
}
