/** The schemas of the five tools as they are published, and as they first were. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHRONOMETRIC_VERSION } from '../../src/chronometric/server.ts';
import { toolDefinitions } from '../../src/chronometric/tools/definitions.ts';
import { changesThatBreak, type Direction, type Schema } from './additive.ts';

const LINE = `v${CHRONOMETRIC_VERSION}`;
const DIRECTIONS = ['input', 'output'] as const satisfies readonly Direction[];

export type ToolSchema = { readonly name: string; readonly direction: Direction; readonly schema: Schema };

/** What the tools say now, each under an identity that stays for the whole of v0.1.x. */
export function toolSchemas(): readonly ToolSchema[] {
  return toolDefinitions().flatMap(({ name, title, description, inputSchema, outputSchema }) =>
    DIRECTIONS.map((direction): ToolSchema => {
      const about =
        direction === 'input'
          ? { title: `${title}: arguments`, description }
          : { title: `${title}: answer`, description: `What ${name} answers as structured content.` };
      const schema = {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: `urn:reveille:chronometric:${LINE}:${name}:${direction}`,
        ...about,
        ...(direction === 'input' ? inputSchema : outputSchema),
      };
      return { name, direction, schema };
    }),
  );
}

export const schemaFile = ({ name, direction }: ToolSchema) => `chronometric/${LINE}/${name}.${direction}.schema.json`;

/** As v0.1.0 was published first. Never written anew: it is what later ones are held against. */
export const BASELINE = join(import.meta.dirname, 'baseline-v0.1.json');

export function baseline(): readonly ToolSchema[] {
  return JSON.parse(readFileSync(BASELINE, 'utf8')) as ToolSchema[];
}

/** @returns a sentence for each change since that is not additive */
export function breaksSince(before: readonly ToolSchema[], now: readonly ToolSchema[]): readonly string[] {
  return before.flatMap(({ name, direction, schema }) => {
    const current = now.find((each) => each.name === name && each.direction === direction);
    if (!current) return [`${name}.${direction}: is gone`];
    return changesThatBreak(schema, current.schema, direction).map((problem) => `${name}.${direction} ${problem}`);
  });
}
