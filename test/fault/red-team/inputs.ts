/** The hostile texts: `inputs/*.json`, one file per technique. */
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
  /** The model's output for it: these transfers, one after the other. */
  wants: z.array(transfer).min(1).optional(),
  /** The intent that the model submits instead, verbatim. */
  intent: z.string().optional(),
  /** Arguments of a lookup that the model makes first. */
  lookup: z.record(z.string(), z.unknown()).optional(),
  /** `gate`: every value was in the task, so a person decides; `refused`: the executor refuses before any question. */
  expect: z.enum(['gate', 'refused']),
});
export type HostileInput = z.output<typeof inputSchema>;

/** The submitted task, with a name at its end: some texts differ only in the model's output. */
export const taskOf = ({ id, prose }: HostileInput) => `${prose}\n\nReference: ${id}`;

export function readInputs(): readonly HostileInput[] {
  const folder = join(import.meta.dirname, 'inputs');
  const files = globSync('*.json', { cwd: folder }).sort();
  return files.flatMap((file) => z.array(inputSchema).parse(JSON.parse(readFileSync(join(folder, file), 'utf8'))));
}
