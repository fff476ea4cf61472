/**
 * A scripted model that plays both parts: the agent that hands a transfer over, and the compiler that makes a plan of
 * it.
 */
import { calling, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';

export const TASK = 'Transfer 12.50 EUR from alice to rent.';
export const AGENT_MODEL = 'agent';
export const COMPILER_MODEL = 'compiler';

const TRANSFER = { from: 'alice', to: 'rent', amount: '12.50', currency: 'EUR' };

export const spender: Script = (response, request) => {
  const { model, messages } = request.body;
  if (model === COMPILER_MODEL) {
    const plan = { id: 'pay', kind: 'call', tool: 'ledger/transfer', args: TRANSFER };
    return calling({ name: 'submit_intent', args: { verb: 'transfer', plan } })(response, request);
  }
  const last = messages.at(-1)!;
  if (last.role === 'tool') return saying(last.content)(response, request);
  if (/has ended: intent/.test(last.content)) return saying('Noted: it is over.')(response, request);
  return calling({ name: 'core_execute', args: { intent: TASK } })(response, request);
};
