/** Reading what the paths and bodies of intents' routes have in common. */
import { z } from 'zod';
import { bodyBytes, readJson } from '../../kit/http/body.ts';
import type { HttpContext } from '../../kit/http/environment.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { intentIdSchema, nodeIdSchema } from '../../wire/executor.ts';
import { parseOrThrow } from '../../wire/validate.ts';

const nothing = z.strictObject({});

/** @throws ReveilleError `not_found` for an id that no intent can have */
export function intentIdOf(c: HttpContext): string {
  const id = intentIdSchema.safeParse(c.req.param('id'));
  if (id.success) return id.data;
  throw new ReveilleError(
    'not_found',
    'you have no intent with this id; "reveille intent list" (GET /intents) lists yours',
  );
}

/** @throws ReveilleError `not_found` for an id that no node can have */
export function nodeIdOf(c: HttpContext): string {
  const id = nodeIdSchema.safeParse(c.req.param('node_id'));
  if (id.success) return id.data;
  throw new ReveilleError('not_found', 'the intent has no node with this id; GET /intents/{id} shows its plan');
}

/** An argument that is ignored is a mistake that nobody tells the caller of. @throws ReveilleError `invalid_request` naming it */
export async function refuseArguments(c: HttpContext): Promise<void> {
  parseOrThrow(nothing, c.req.query());
  if (bodyBytes(c).length > 0) parseOrThrow(nothing, await readJson(c));
}
