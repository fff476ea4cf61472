/** What Neo asks a model: besides the words the facts of the turn, for a model that does not read. */
import type { Model, ModelRequest } from '../../kit/model/model.ts';
import type { Occasion } from '../turn.ts';

export type NeoRequest = ModelRequest & {
  /** The facts of the turn as data. */
  readonly occasion: Occasion;
};

/** Any model will do; the offline one needs the occasion. */
export type NeoModel = Model<NeoRequest>;
