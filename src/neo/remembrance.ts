/** What a turn is shown of what is remembered beyond its conversation. */
import type { Turn } from './turn.ts';

/** Neither may throw; what they give is rendered as a quotation. */
export type Remembrance = {
  /** Pinned: who the user is and what rules hold. */
  profile(): string | undefined;
  relevantTo(turn: Turn, limit: number): Promise<string | undefined>;
};
