/** The published schemas of the five tools, and their first version. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHRONOMETRIC_VERSION } from '../../src/chronometric/server.ts';
import { publishedSchemas, toolDefinitions } from '../../src/chronometric/tools/definitions.ts';
import { CHRONOMETRIC_TOOL_VERSIONS, type ChronometricTool, DAYS } from '../../src/wire/chronometric-vocabulary.ts';
import { changesThatBreak, type Direction, type Schema, WORDS } from './additive.ts';

const LINE = `v${CHRONOMETRIC_VERSION}`;
const DIRECTIONS = ['input', 'output'] as const satisfies readonly Direction[];

export type ToolSchema = { readonly name: ChronometricTool; readonly direction: Direction; readonly schema: Schema };

/** The current schemas, each with an identity that stays for all of v0.1.x. */
export function toolSchemas(): readonly ToolSchema[] {
  return toolDefinitions().flatMap(({ name, title, description }) =>
    DIRECTIONS.map((direction): ToolSchema => {
      const about =
        direction === 'input'
          ? { title: `${title}: arguments`, description }
          : { title: `${title}: answer`, description: `What ${name} answers as structured content.` };
      const schema = {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        $id: `urn:reveille:chronometric:${LINE}:${name}:${direction}`,
        $comment: `version ${CHRONOMETRIC_TOOL_VERSIONS[name]} of ${name}`,
        ...about,
        ...publishedSchemas(name)[direction],
      };
      return { name, direction, schema };
    }),
  );
}

export const schemaFile = ({ name, direction }: ToolSchema) => `chronometric/${LINE}/${name}.${direction}.schema.json`;

/** The first published v0.1.0. It never changes; later versions are compared with it. */
export const BASELINE = join(import.meta.dirname, 'baseline-v0.1.json');

export function baseline(): readonly ToolSchema[] {
  return JSON.parse(readFileSync(BASELINE, 'utf8')) as ToolSchema[];
}

/**
 * Corrections within v0.1.x: values of this project's v0.1.0 that differed from the v0.1.0 of the sources
 * (docs/internals/decisions/0017-chronometric.md). There is no other exception.
 */
export const CORRECTIONS: readonly string[] = DAYS.map(
  (day) => `get_time_context.output /day_of_week: the value "${day}" is gone`,
);

/** @returns a sentence per change that is neither additive nor a correction */
export function breaksSince(before: readonly ToolSchema[], now: readonly ToolSchema[]): readonly string[] {
  return changesSince(before, now).filter((change) => !CORRECTIONS.includes(change));
}

/** @returns a sentence per non-additive change */
export function changesSince(before: readonly ToolSchema[], now: readonly ToolSchema[]): readonly string[] {
  return before.flatMap(({ name, direction, schema }) => {
    const current = now.find((each) => each.name === name && each.direction === direction);
    if (!current) return [`${name}.${direction}: is gone`];
    return changesThatBreak(schema, current.schema, direction).map((problem) => `${name}.${direction} ${problem}`);
  });
}

/** By tool and version, the digest of the constraints in its schemas. */
export type ToolVersions = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const TOOL_VERSIONS_FILE = 'chronometric/tool-versions.json';

export function knownToolVersions(): ToolVersions {
  return JSON.parse(readFileSync(join(import.meta.dirname, '..', TOOL_VERSIONS_FILE), 'utf8')) as ToolVersions;
}

/** The schema without texts for people and without identities. */
function bare(value: unknown, isSchema = true): unknown {
  if (Array.isArray(value)) return value.map((item) => bare(item));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(([name]) => !isSchema || (!WORDS.has(name) && name !== '$id'))
    .map(([name, member]) => [name, bare(member, name !== 'properties')]);
  return Object.fromEntries(members);
}

/**
 * All versions of each tool, the current one included.
 *
 * @throws Error when a tool has changed and its version has not
 */
export function toolVersions(known: ToolVersions, schemas: readonly ToolSchema[]): ToolVersions {
  const names = [...new Set(schemas.map(({ name }) => name))];
  const entries = names.map((name) => {
    const version = CHRONOMETRIC_TOOL_VERSIONS[name];
    const shapes = DIRECTIONS.map(
      (one) => schemas.find((each) => each.name === name && each.direction === one)?.schema,
    );
    const digest = createHash('sha256')
      .update(JSON.stringify(bare(shapes)))
      .digest('hex');
    const before = known[name]?.[version];
    if (before !== undefined && before !== digest)
      throw new Error(`${name} is not what its version ${version} was; give it the next in CHRONOMETRIC_TOOL_VERSIONS`);
    return [name, { ...known[name], [version]: digest }];
  });
  return Object.fromEntries(entries) as ToolVersions;
}
