/**
 * The generated modules of the Python client (clients/python), from the OpenAPI documents: a class per public API with a
 * method per route, and a type per object of a request or answer.
 */
type Json = Record<string, unknown>;
type Operation = {
  operationId: string;
  summary: string;
  security: Record<string, unknown>[];
  parameters: { name: string; in: 'path' | 'query'; required: boolean; schema: Json }[];
  requestBody?: { content: { 'application/json': { schema: Json } } };
  responses: Record<string, { content: Record<string, { schema: { properties?: { data?: Json } } }> }>;
};
type Document = {
  info: { description: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
};

/** The classes, by document. */
const CLASSES: Readonly<Record<string, string>> = {
  chronosd: 'Chronosd',
  'router-public': 'Agent',
  executor: 'Executor',
};
/** Type names of answers; others use the name of their operation. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ createAlarm: 'CreatedAlarm', listAlarms: 'AlarmPage', listFires: 'FirePage', triggerAlarm: 'TriggeredAlarm' },
  ...{ chat: 'AcceptedTurn', conversations: 'ConversationPage', listConversations: 'ConversationPage' },
  ...{ getConversation: 'Conversation', getReceipt: 'Receipt', submit: 'AcceptedIntent', listIntents: 'IntentPage' },
  ...{ getState: 'IntentState', listGates: 'GatePage' },
};
/** Type names of list elements. */
const ELEMENTS: Readonly<Record<string, string>> = {
  ...{ intents: 'Intent', pending: 'Gate', conversations: 'ConversationSummary', envelopes: 'Envelope' },

  alarms: 'Alarm',
  fires: 'Fire',
  turns: 'Turn',
  agents: 'EnrolledKey',
};
/** Routes without a generated method: streams (written by hand), operator routes and internal routes. */
const LEFT_OUT = /^(?:events|metrics|root|ready|challenge|verify|postReceipts|usageOfTurns|consoleCode)$/;

const WORDS = new Set(['from', 'class', 'def', 'global', 'import', 'is', 'lambda', 'not', 'or', 'pass', 'with', 'in']);
const snake = (name: string) => name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
const pascal = (name: string) => name.replace(/(?:^|[_-])(\w)/g, (_, letter: string) => letter.toUpperCase());
const argument = (name: string) => (WORDS.has(name) ? `${name}_` : name);

/** Types of one module. Objects of the same shape share the first name. */
class Types {
  readonly #byShape = new Map<string, string>();
  readonly #texts: string[] = [];
  readonly #taken = new Set<string>();
  readonly #document: Document;

  constructor(document: Document) {
    this.#document = document;
  }

  get text(): string {
    return this.#texts.join('\n\n');
  }

  /** The Python type of a schema. @param name the name for an object that has no type yet */
  of(schema: Json, name: string): string {
    const {
      $ref,
      enum: values,
      const: value,
      anyOf,
      oneOf,
      allOf,
      type,
    } = schema as {
      $ref?: string;
      enum?: unknown[];
      const?: unknown;
      anyOf?: Json[];
      oneOf?: Json[];
      allOf?: Json[];
      type?: string | string[];
    };
    if ($ref !== undefined) {
      const referred = $ref.split('/').at(-1)!;
      // Quoted: a type may refer to itself.
      return `"${this.#known(referred)}"`;
    }
    if (values) return `Literal[${values.map((one) => this.#literal(one)).join(', ')}]`;
    if (value !== undefined) return `Literal[${this.#literal(value)}]`;
    const kinds = anyOf ?? oneOf;
    if (kinds)
      return [...new Set(kinds.map((one, index) => this.of(one, `${name}${index === 0 ? '' : index + 1}`)))].join(
        ' | ',
      );
    if (allOf || type === undefined) return 'Any';
    if (Array.isArray(type)) return type.map((one) => this.of({ ...schema, type: one }, name)).join(' | ');
    return this.#ofType(type, schema, name);
  }

  #ofType(type: string, schema: Json, name: string): string {
    if (type === 'string') return 'str';
    if (type === 'integer') return 'int';
    if (type === 'number') return 'Number';
    if (type === 'boolean') return 'bool';
    if (type === 'null') return 'None';
    if (type === 'array') return `list[${this.of((schema.items ?? {}) as Json, name.replace(/s$/, ''))}]`;
    const properties = schema.properties as Record<string, Json> | undefined;
    if (!properties) return `dict[str, ${this.of((schema.additionalProperties || {}) as Json, name)}]`;
    return this.#object(properties, new Set((schema.required ?? []) as string[]), name);
  }

  #literal(value: unknown): string {
    return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);
  }

  /** The type of a named schema. */
  #known(name: string): string {
    if (!this.#taken.has(name)) {
      this.#taken.add(name);
      this.#texts.push(`${name} = Any  # refers to itself; docs/reference/routes.md has its members`);
    }
    return name;
  }

  #object(properties: Record<string, Json>, required: ReadonlySet<string>, wanted: string): string {
    const shape = JSON.stringify([properties, [...required].toSorted()]);
    const known = this.#byShape.get(shape);
    if (known) return known;
    let name = wanted;
    for (let n = 2; this.#taken.has(name); n++) name = `${wanted}${n}`;
    this.#taken.add(name);
    this.#byShape.set(shape, name);
    const members = Object.entries(properties).map(([member, schema]) => {
      const type = this.of(schema, ELEMENTS[member] ?? `${name}${pascal(member)}`);
      return [member, required.has(member) ? type : `NotRequired[${type}]`] as const;
    });
    const isPlain = members.every(([member]) => /^[a-z_]\w*$/i.test(member) && !WORDS.has(member));
    this.#texts.push(
      isPlain
        ? [`class ${name}(TypedDict):`, ...members.map(([member, type]) => `    ${member}: ${type}`), ''].join('\n')
        : [
            `${name} = TypedDict("${name}", {`,
            ...members.map(([member, type]) => `    "${member}": ${type},`),
            '})',
          ].join('\n'),
    );
    return name;
  }

  body(schema: Json): Record<string, Json> {
    const resolved = (
      schema.$ref ? this.#document.components.schemas[String(schema.$ref).split('/').at(-1)!] : schema
    )!;
    return (resolved.properties ?? {}) as Record<string, Json>;
  }
}

/** One method. Each member of a body is an argument; optional members are optional. */
function method(types: Types, path: string, verb: string, operation: Operation): string {
  const { operationId, summary, parameters, requestBody, responses, security } = operation;
  const [answer] = Object.values(responses);
  const data = answer?.content['application/json']?.schema.properties?.data ?? {};
  const result = types.of(data, NAMES[operationId] ?? `${pascal(operationId)}Result`);
  const inPath = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
  const query = parameters.filter((one) => one.in === 'query');
  const schema = requestBody?.content['application/json'].schema ?? {};
  const members = types.body(schema);
  const required = new Set((schema.required ?? []) as string[]);
  // A union of bodies has no members; it is one argument.
  const isWhole = requestBody !== undefined && Object.keys(members).length === 0;
  const name = pascal(operationId);
  const optional = [
    ...Object.entries(members).filter(([member]) => !required.has(member)),
    ...query.map(
      ({ name: member, schema: type }) => [member, member === 'limit' ? { type: 'integer' } : type] as [string, Json],
    ),
  ];
  const needed = Object.entries(members).filter(([member]) => required.has(member));
  const given = [
    ...inPath.map((one) => `${argument(one)}: str`),
    ...(isWhole ? [`body: ${types.of(schema, `${name}Body`)}`] : []),
    ...(needed.length + optional.length > 0 ? ['*'] : []),
    ...needed.map(([member, type]) => `${argument(member)}: ${types.of(type, `${name}${pascal(member)}`)}`),
    ...optional.map(
      ([member, type]) => `${argument(member)}: ${types.of(type, `${name}${pascal(member)}`)} | Unset = UNSET`,
    ),
  ];
  const pair = (member: string) => `"${member}": ${argument(member)}`;
  const dict = (names: readonly string[]) => `{${names.map(pair).join(', ')}}`;
  const proof = security[0] !== undefined && 'principal' in security[0];
  const isFilled = path.includes('{');
  const target = `${isFilled ? 'f' : ''}"${path.replace(/\{(\w+)\}/g, (_, one: string) => `{quoted(${argument(one)})}`)}"`;
  const more = [
    ...(query.length > 0 ? [`query=${dict(query.map((one) => one.name))}`] : []),
    ...(isWhole ? ['body=body'] : requestBody ? [`body=${dict(Object.keys(members))}`] : []),
    ...(proof ? ['proven=True'] : []),
  ];
  const head = `    def ${snake(operationId)}(${['self', ...given].join(', ')}) -> ${result}:`;
  return [
    head,
    `        """${summary.replace(/^./, (letter) => letter.toUpperCase())}."""`,
    `        return cast("${result}", self._call("${verb.toUpperCase()}", ${[target, ...more].join(', ')}))`,
    '',
  ].join('\n');
}

function moduleOf(name: string, document: Document): string {
  const types = new Types(document);
  const methods = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(
        ([, { operationId, security }]) => !LEFT_OUT.test(operationId) && !security.some((one) => 'adminBearer' in one),
      )
      .map(([verb, operation]) => method(types, path, verb, operation)),
  );
  return [
    `# Generated from schemas/${name}.openapi.json by "npm run schemas"; do not edit.`,
    '# ruff: noqa: E501',
    'from __future__ import annotations',
    '',
    'from typing import Any, Literal, NotRequired, TypedDict, cast',
    '',
    'from ._transport import UNSET, Caller, Number, Unset, quoted',
    '',
    types.text.replace(/\n{3,}/g, '\n\n\n'),
    '',
    `class ${CLASSES[name]}Routes(Caller):`,
    `    """${document.info.description}"""`,
    '',
    methods.join('\n'),
  ].join('\n');
}

/** The generated modules, by their paths relative to `schemas/`. */
export function pythonModules(documents: ReadonlyMap<string, unknown>): Map<string, string> {
  return new Map(
    Object.keys(CLASSES).map((name) => [
      `../clients/python/reveille/_${name.replaceAll('-', '_')}.py`,
      moduleOf(name, documents.get(name) as Document),
    ]),
  );
}
