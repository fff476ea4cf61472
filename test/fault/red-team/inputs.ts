/** The hostile texts: `inputs/*.json`, one file for each technique. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { contextPieceSchema } from '../../../src/wire/executor.ts';

const transfer = z.strictObject({
  from: z.string(),
  to: z.string(),
  amount: z.string(),
  currency: z.string(),
  memo: z.string().optional(),
});

const inputSchema = z.strictObject({
  id: z.string(),
  prose: z.string(),
  context: z.array(contextPieceSchema).optional(),
  origin: z.enum(['chronos', 'person']).optional(),
  /** What the model does for it: these transfers, one after the other. */
  wants: z.array(transfer).min(1).optional(),
  /** The intent that the model hands in instead, as it writes it. */
  intent: z.string().optional(),
  /** Arguments of a lookup that the model makes first. */
  lookup: z.record(z.string(), z.unknown()).optional(),
  /** `gate`: every value was handed over, so a person decides; `refused`: it does not even come to a question. */
  expect: z.enum(['gate', 'refused']),
});
export type HostileInput = z.output<typeof inputSchema>;

/**
 * The task as it is handed over: with a name at its end, for some texts differ only in what the model makes of them.
 */
export const taskOf = ({ id, prose }: HostileInput) => `${prose}\n\nReference: ${id}`;

export function readInputs(): readonly HostileInput[] {
  const folder = join(import.meta.dirname, 'inputs');
  const files = globSync('*.json', { cwd: folder }).sort();
  return files.flatMap((file) => z.array(inputSchema).parse(JSON.parse(readFileSync(join(folder, file), 'utf8'))));
}
