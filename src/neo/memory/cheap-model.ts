/** The model that the learner asks: any model port, one question at a time. */
import { ReveilleError } from '../../wire/errors.ts';
import type { NeoModel } from '../model/request.ts';
import type { Ask } from './learner.ts';

/** Asks a model without tools and without an audience. An answer that was cut off is none. */
export function askModel(model: NeoModel): Ask {
  return async ({ system, prompt, turn, signal }) => {
    const messages = [{ role: 'user' as const, content: prompt }];
    const answer = await model.generate({ system, messages, occasion: turn, signal, onText: () => {} });
    if (answer.cutOff !== undefined) throw new ReveilleError('unavailable', answer.cutOff);
    return answer.text;
  };
}
