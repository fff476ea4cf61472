/**
 * A second verifier of intent receipts, written from test/contract/receipt-vectors/README.md alone. It shares nothing with the first and
 * imports only Node's own modules. The tables of the page are tables here, and its rules are one list in the page's
 * order.
 *
 * node verifier.mjs FILE|- [--key <public key, its id, or did:matrix:…>] [--approver <public key>]…
 *
 * It prints one line of JSON for each receipt of the file: `{ok:true, intent_id, ends_with, key}` or `{ok:false, seq,
 * what, rule}`. `ends_with` is null for an intent that is not final. `key` says whether the reader `named` it or the
 * file `claimed` it.
 * It exits with 0 if all receipts are valid, 1 if one is not, 2 if there is no such file or key.
 */
import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto';
import { readFileSync } from 'node:fs';
import process, { argv, stdin, stdout } from 'node:process';
import { pathToFileURL } from 'node:url';

// ---- Reading: objects become Maps, so that no member name has a meaning for JavaScript. ----

/** Text that is not strict JSON. */
class Unreadable extends Error {}
/** There is no such file, or no such key. */
class Unusable extends Error {}

/** Around a receipt; the answer of an executor adds one object. */
const MAX_DEPTH = 256;
const WORDS = [
  ['true', true],
  ['false', false],
  ['null', null],
];
const UNESCAPED = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/**
 * A finite number's digits without zeros at both ends, and the power of ten of its last digit: one form for each value.
 */
const decimal = (lexeme) => {
  const [, whole, fraction = '', power = '0'] = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE](.+))?$/.exec(lexeme);
  const digits = (whole + fraction).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  return kept === '' ? '0' : `${kept}e${Number(power) - fraction.length + digits.length - kept.length}`;
};

/**
 * The values of a text, one after another.
 * @param {string} text
 * @param {{exact?: boolean, path?: string[], found?: (source: string) => void}} [look] numbers may have any length;
 * `found` gets the text of the value at this path
 * @returns {Generator<unknown>}
 */
function* readEach(text, { exact = true, path, found } = {}) {
  let at = 0;
  let deepest = 0;
  const fail = (why) => {
    throw new Unreadable(`${why} at ${at}`);
  };
  const blank = () => {
    while (' \t\n\r'.includes(text[at] ?? 'x')) at++;
  };
  const take = (piece) => {
    const there = text.startsWith(piece, at);
    if (there) at += piece.length;
    return there;
  };
  const expect = (piece) => take(piece) || fail(`no ${piece}`);

  const string = () => {
    expect('"');
    let value = '';
    for (let from = at; ; at++) {
      const char = text[at] ?? fail('an open string');
      if (char < ' ') fail('a control character');
      if (char !== '"' && char !== '\\') continue;
      value += text.slice(from, at);
      if (char === '"') break;
      const letter = text[at + 1] ?? '';
      const hex = /^[0-9a-fA-F]{4}$/.exec(letter === 'u' ? text.slice(at + 2, at + 6) : '');
      if (hex) value += String.fromCharCode(Number.parseInt(hex[0], 16));
      else value += Object.hasOwn(UNESCAPED, letter) ? UNESCAPED[letter] : fail('a wrong escape');
      at += hex ? 5 : 1;
      from = at + 1;
    }
    at++;
    return value.isWellFormed() ? value : fail('half of a surrogate pair');
  };
  const number = () => {
    NUMBER.lastIndex = at;
    const lexeme = NUMBER.exec(text)?.[0] ?? fail('no value');
    const value = Number(lexeme);
    const same = Number.isFinite(value) && decimal(lexeme) === decimal(String(value));
    if (exact && !same) fail('an inexact number');
    at += lexeme.length;
    return value;
  };
  const items = (close, item) => {
    blank();
    if (take(close)) return;
    do {
      blank();
      item();
      blank();
    } while (take(','));
    expect(close);
  };
  /** The matched length of the path; undefined outside of it. */
  const next = (gone, name) => (path?.[gone] === name ? gone + 1 : undefined);
  const value = (depth, gone) => {
    const from = at;
    const read = anyValue(depth, gone);
    if (gone === path?.length) found?.(text.slice(from, at));
    return read;
  };
  const anyValue = (depth, gone) => {
    if ('[{'.includes(text[at])) deepest = Math.max(deepest, depth);
    if (deepest > MAX_DEPTH + 1) fail('too deep');
    if (text[at] === '"') return string();
    if (take('[')) {
      const list = [];
      items(']', () => list.push(value(depth + 1, next(gone, String(list.length)))));
      return list;
    }
    if (take('{')) {
      const members = new Map();
      items('}', () => {
        const name = string();
        if (members.has(name)) fail('a second member of one name');
        blank();
        expect(':');
        blank();
        members.set(name, value(depth + 1, next(gone, name)));
      });
      return members;
    }
    const word = WORDS.find(([spelling]) => take(spelling));
    return word ? word[1] : number();
  };

  for (blank(); at < text.length; blank()) {
    deepest = 0;
    const whole = value(1, 0);
    if (deepest > MAX_DEPTH && !isAnswer(whole)) fail('too deep');
    yield whole;
  }
}

/** The single value of a text; undefined if the text is not one value. */
const readOne = (text, look) => {
  try {
    const values = [...readEach(text, look)];
    return values.length === 1 ? { value: values[0] } : undefined;
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
};

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/s;
const stepsOf = (pointer) =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replace(/~1/g, '/').replace(/~0/g, '~'));

/** The text of the value at a JSON Pointer in a JSON text; undefined if there is none. */
const sourceAt = (text, pointer) => {
  let source;
  const read = readOne(text, {
    exact: false,
    path: stepsOf(pointer),
    found: (there) => {
      source = there;
    },
  });
  return read && source;
};

// ---- Writing and hashing. ----

const SHORT = { '\b': '\\b', '\t': '\\t', '\n': '\\n', '\f': '\\f', '\r': '\\r', '"': '\\"', '\\': '\\\\' };
const escaped = (char) => SHORT[char] ?? `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
const quoted = (text) => `"${text.replace(/["\\\u0000-\u001f]/g, escaped)}"`;

/** RFC 8785. JavaScript sorts texts by UTF-16 code units, and `String` writes a number (-0, too) as ECMAScript does. */
const canonical = (value) => {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!(value instanceof Map)) return String(value);
  const names = [...value.keys()].sort();
  return `{${names.map((name) => `${quoted(name)}:${canonical(value.get(name))}`).join()}}`;
};
const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const hashOf = (value) => sha256(canonical(value));
const without = (map, unwanted) => new Map([...map].filter(([name, value]) => !unwanted(name, value)));

// ---- Ed25519, with the refusals of RFC 8032 that a library may omit. ----

const FIELD = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const PAYLOAD_TYPE = 'application/vnd.reveille.receipt+json';
const littleEndian = (hex) => BigInt(`0x${Buffer.from(hex, 'hex').reverse().toString('hex')}`);

function holdsUnder(publicKey, signature, bytes) {
  if (littleEndian(signature.slice(64)) >= ORDER) return false;
  if (littleEndian(publicKey) % 2n ** 255n >= FIELD) return false;
  const spki = Buffer.from(`302a300506032b6570032100${publicKey}`, 'hex');
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' });
  return verifySignature(null, bytes, key, Buffer.from(signature, 'hex'));
}

function signed(envelope, publicKey) {
  const text = Buffer.from(canonical(without(envelope, (name) => name === 'signature')));
  const encoding = Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${text.length} `), text]);
  return holdsUnder(publicKey, envelope.get('signature'), encoding);
}

// ---- Instants, as milliseconds since the beginning of year 0; undefined if invalid. ----

const INSTANT = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/i;
const leap = (year) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
const monthDays = (year) => [31, leap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function instant(text) {
  const found = INSTANT.exec(text);
  if (!found) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number);
  const [fraction = '', sign = '+', offsetHours = '0', offsetMinutes = '0'] = found.slice(7);
  const inDay = hour < 24 && minute < 60 && second < 60 && Number(offsetHours) < 24 && Number(offsetMinutes) < 60;
  if (!inDay || month < 1 || month > 12 || day < 1 || day > monthDays(year)[month - 1]) return undefined;
  const leapDays =
    year === 0
      ? 0
      : 1 + ['4', '-100', '400'].reduce((sum, n) => sum + Math.sign(n) * Math.floor((year - 1) / Math.abs(n)), 0);
  const inYear = monthDays(year)
    .slice(0, month - 1)
    .reduce((sum, days) => sum + days, day - 1);
  const offset = Number(`${sign}1`) * (Number(offsetHours) * 60 + Number(offsetMinutes));
  const minutes = ((year * 365 + leapDays + inYear) * 24 + hour) * 60 + minute - offset;
  return (minutes * 60 + second) * 1000 + Number(fraction.padEnd(3, '0').slice(0, 3));
}

// ---- Shapes: `name:type`, `name?:type` for an optional member, `a|b` for constants, and `!` where no other member is
// allowed. ----

const FIRST = instant('0000-01-01T00:00:00Z');
const LAST = instant('9999-12-31T23:59:59.999Z');
const inFourDigits = (moment) => moment !== undefined && moment >= FIRST && moment <= LAST;

const isText = (value) => typeof value === 'string';
const matches = (pattern) => (value) => isText(value) && pattern.test(value);
const isWhole = (value) => Number.isSafeInteger(value) && value >= 0;
const NODES = { call: 'callNode', wait: 'waitNode', sequence: 'groupNode', parallel: 'groupNode' };

const TYPES = {
  text: isText,
  any: () => true,
  true_or_false: (value) => typeof value === 'boolean',
  object: (value) => value instanceof Map,
  object_or_list: (value) => value instanceof Map || Array.isArray(value),
  hash: matches(/^[0-9a-f]{64}$/),
  signature: matches(/^[0-9a-f]{128}$/),
  hex: matches(/^(?:[0-9a-f][0-9a-f])+$/),
  whole: isWhole,
  position: (value) => isWhole(value) && value >= 1,
  two: (value) => value === 2,
  seconds: (value) => isWhole(value) && value >= 1 && value <= 2592000,
  moment: (value) => matches(/T\d\d:\d\d:\d\d\.\d{3}Z$/)(value) && instant(value) !== undefined,
  deadline: (value) => matches(/:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i)(value) && inFourDigits(instant(value)),
  verb: matches(/^[^\0]{1,100}$/u),
  id: matches(/^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$/),
  tool: matches(/^[A-Za-z0-9_-]{1,64}\/[^\n\r\u2028\u2029]{1,128}$/u),
  piece: matches(/^(?:person|alarm|tool)$/),
  kind: (value) => BODIES.has(value),
  node: (value) =>
    value instanceof Map &&
    Object.hasOwn(NODES, value.get('kind')) &&
    fits(NODES[value.get('kind')], value) &&
    (value.get('kind') !== 'wait' || value.has('seconds') !== value.has('until')),
  nodes: (value) => Array.isArray(value) && value.length >= 1 && value.length <= 64 && fits('node[]', value),
};

const RECEIVED = 'response_sha256?:hash response_bytes?:whole text?:text';
const STATUS = 'status:succeeded|failed|not_run|unknown';

const SHAPES = {
  wrapped: 'ok:true_or_false data:any',
  receipt: '! format:reveille-receipt/1| intent_id:text public_key:hash envelopes:any[]',
  envelope: '! seq:position kind:kind body:object prev_hash:hash key_id:hash signature:signature',
  principal: 'user:text conversation_id?:text origin:person|chronos',
  context: 'pieces:piece[] sha256:hash',
  read: `tool:text args:object args_sha256:hash is_error:true_or_false ${RECEIVED}`,
  provenance: 'node_id:text place:text value:text from:text tool?:text',
  amount: 'value:text currency:text',
  reference: 'node_id:text place:text from:text pointer:text',
  passkey:
    'credential_id:hex public_key:hex rp_id:text origin:text authenticator_data:hex client_data:text signature:hex',
  resolved: 'place:text ref:text json:text',
  call: 'tool:text args:object args_sha256:hash call_sha256:hash definition_sha256:hash',
  intent: '! verb:verb objects?:object_or_list constraints?:object_or_list deadline?:deadline plan:node',
  callNode: '! id:id kind:call| tool:tool args:object',
  waitNode: '! id:id kind:wait| seconds?:seconds until?:deadline',
  groupNode: '! id:id kind:sequence|parallel nodes:nodes',
};

const BODIES = new Map(
  Object.entries({
    'intent.accepted':
      'intent_id:text principal:principal idempotency_key?:text prose?:text intent?:text context?:context manifest_sha256:hash policy_sha256:hash rules?:two',
    'intent.compiled':
      'intent:intent compiler:text reads:read[] tools:hash{} provenance?:provenance[] references?:reference[]',
    'intent.clarify': 'question:text compiler:text reads:read[]',
    'intent.parked': 'conversation_id:text',
    'call.decided':
      'call:call surface:natural|escalate effect:allow|ask|deny rule:text reason:text policy_sha256:hash amount?:amount resolved?:resolved[]',
    'call.tried': `tool:text args:object args_sha256:hash ${STATUS} ${RECEIVED}`,
    'gate.asked': 'call_sha256:hash displayed:text displayed_sha256:hash expires_at:moment',
    'gate.answered':
      'call_sha256:hash approved:true_or_false by:text answer?:text displayed_sha256?:hash approver?:hash expires_at?:moment signature?:signature passkey?:passkey name?:text',
    'gate.refused': 'by:text reason:text call_sha256?:text approver?:text',
    'gate.expired': 'call_sha256:hash',
    'call.started': 'call:call surface:natural|escalate idempotency_key?:text',
    'call.finished': `${STATUS} reason?:text references?:object result?:any result_text?:text ${RECEIVED}`,
    'call.reconciled': `tool:text args_sha256:hash ${STATUS} reason:text ${RECEIVED}`,
    'call.read_back': `tool:text args_sha256:hash ${STATUS} ${RECEIVED}`,
    'wait.started': 'until:moment',
    'wait.finished': '',
    'journal.broken': 'good_seq:whole reason:text',
    'intent.completed': 'result?:any',
    'intent.failed': 'code:text reason:text',
    'intent.cancelled': 'by:text reason:text',
    'intent.unknown': 'reason:text nodes:text[]',
  }).map(([kind, shape]) => [kind, `at:moment ${/^(?:call|gate|wait)\./.test(kind) ? 'node_id:text ' : ''}${shape}`]),
);

/**
 * Whether a value is of a type: of `TYPES`, of `SHAPES`, a list `x[]`, an object of them `x{}`, or one of the constants
 * `a|b`.
 */
function fits(type, value) {
  if (type.endsWith('[]')) return Array.isArray(value) && value.every((one) => fits(type.slice(0, -2), one));
  if (type.endsWith('{}'))
    return value instanceof Map && [...value.values()].every((one) => fits(type.slice(0, -2), one));
  if (type.includes('|')) return isText(value) && value !== '' && type.split('|').includes(value);
  return Object.hasOwn(TYPES, type) ? TYPES[type](value) : hasShape(SHAPES[type], value);
}

function hasShape(shape, value) {
  if (!(value instanceof Map)) return false;
  const members = [...shape.matchAll(/(\w+)(\??):(\S+)/g)];
  const known = new Set(members.map(([, name]) => name));
  if (shape.startsWith('!') && [...value.keys()].some((name) => !known.has(name))) return false;
  return members.every(([, name, optional, type]) =>
    value.has(name) ? fits(type, value.get(name)) : optional === '?',
  );
}

/** Whether a value is an executor's answer around a receipt. */
const isAnswer = (value) => fits('wrapped', value) && value.get('ok') && !value.has('format');

// ---- Digests: the hash for each member. ----

const argsHash = (body) => body.get('args_sha256') === hashOf(body.get('args'));
const readHashes = (body) => body.get('reads').every(argsHash);
const callHashes = (body) => {
  const call = body.get('call');
  return (
    argsHash(call) && call.get('call_sha256') === hashOf(without(call, (name) => name !== 'tool' && name !== 'args'))
  );
};
const DIGESTS = new Map([
  ['intent.compiled', readHashes],
  ['intent.clarify', readHashes],
  ['call.tried', argsHash],
  ['call.decided', callHashes],
  ['call.started', callHashes],
  ['gate.asked', (body) => body.get('displayed_sha256') === sha256(body.get('displayed'))],
]);

// ---- Story: the known past is only the last envelope of each kind, for the intent and each node. ----

const ENDS = ['intent.completed', 'intent.failed', 'intent.cancelled', 'intent.unknown'];
const NEVER = { seq: 0, kind: 'nothing', get: () => undefined };

/**
 * @returns {{seq: number, kind: string, get: (name: string) => any}} the latest of these kinds, or one before all
 * others
 */
const latest = (record, ...kinds) =>
  kinds.map((kind) => record?.get(kind) ?? NEVER).reduce((one, other) => (other.seq > one.seq ? other : one));

const children = (node) => node.get('nodes') ?? [];
const leavesOf = (node) => (node.has('nodes') ? children(node).flatMap(leavesOf) : [node]);
const idsOf = (node) => [node.get('id'), ...children(node).flatMap(idsOf)];

/** The calls and waits that sequences put before the node of this id; undefined if it is not below `node`. */
const leavesBefore = (node, id) => {
  if (node.get('id') === id) return [];
  for (const [index, child] of children(node).entries()) {
    const inside = leavesBefore(child, id);
    if (!inside) continue;
    return node.get('kind') === 'sequence' ? [...children(node).slice(0, index).flatMap(leavesOf), ...inside] : inside;
  }
  return undefined;
};

const withoutKey = (args, key) => without(args, (_name, value) => value === key);

/** A task, an intent or a node without the idempotency keys. It may be any value: a task is the text of its sender. */
const keyless = (value, intentId) => {
  if (Array.isArray(value)) return value.map((one) => keyless(one, intentId));
  if (!(value instanceof Map)) return value;
  const change = (name, member) => {
    if (name === 'plan' || name === 'nodes') return keyless(member, intentId);
    return name === 'args' && member instanceof Map ? withoutKey(member, `${intentId}.${value.get('id')}`) : member;
  };
  return new Map([...value].map(([name, member]) => [name, change(name, member)]));
};

const FROM = 'from';
const refOf = (reference) => `${reference.get(FROM)}#${reference.get('pointer')}`;

/** Arguments with values in the place of references. */
const filledIn = (value, values, steps = []) => {
  const here = values.find(({ place }) => canonical(stepsOf(place)) === canonical(steps));
  if (here) return here.value;
  if (Array.isArray(value)) return value.map((one, index) => filledIn(one, values, [...steps, String(index)]));
  if (!(value instanceof Map)) return value;
  return new Map([...value].map(([name, member]) => [name, filledIn(member, values, [...steps, name])]));
};

/** Whether a reference may be at its position. */
const isPlanned = (reference, plan) => {
  const leaves = leavesOf(plan);
  const named = (name) => leaves.find((leaf) => leaf.get('id') === reference.get(name) && leaf.get('kind') === 'call');
  const [node, from] = [named('node_id'), named(FROM)];
  if (!node || !from || !leavesBefore(plan, node.get('id')).includes(from)) return false;
  if (reference.get('place') === '' || ![reference.get('place'), reference.get('pointer')].every(matches(POINTER)))
    return false;
  const there = sourceAt(canonical(node.get('args')), reference.get('place'));
  return there === canonical(new Map([['$ref', refOf(reference)]]));
};

/** The basis of an envelope's verdict: the past, and the queries of the rules. */
class Past {
  all = new Map();
  nodes = new Map();

  constructor(intentId) {
    this.intentId = intentId;
  }
  add(entry) {
    const records = [this.all];
    const id = entry.get('node_id');
    if (id !== undefined) {
      if (!this.nodes.has(id)) this.nodes.set(id, new Map());
      records.push(this.nodes.get(id));
      if (entry.kind === 'gate.asked') entry.decision = this.of(entry, 'call.decided');
    }
    for (const record of records) {
      record.set(entry.kind, entry);
      if (entry.kind === 'call.started' && entry.get('surface') === 'escalate') record.set('escalate', entry);
    }
  }
  last(...kinds) {
    return latest(this.all, ...kinds);
  }
  of(entry, ...kinds) {
    return latest(this.nodes.get(entry.get('node_id')), ...kinds);
  }
  get intent() {
    return this.last('intent.compiled').get('intent');
  }
  get leaves() {
    return this.intent ? leavesOf(this.intent.get('plan')) : [];
  }
  leaf(entry, kind) {
    return this.leaves.find((node) => node.get('id') === entry.get('node_id') && node.get('kind') === kind);
  }
  state(record) {
    const { kind, get } = latest(record, 'call.started', 'call.finished', 'call.reconciled');
    return kind === 'nothing' ? 'not started' : kind === 'call.started' ? 'started' : get('status');
  }
  stateOf(entry) {
    return this.state(this.nodes.get(entry.get('node_id')));
  }
  done(leaf) {
    const record = this.nodes.get(leaf.get('id'));
    return leaf.get('kind') === 'wait' ? latest(record, 'wait.finished').seq > 0 : this.state(record) === 'succeeded';
  }
  /** The ids of the calls with an unknown outcome, with whether consent was needed for each. */
  get open() {
    return [...this.nodes]
      .filter(([, record]) => ['started', 'unknown'].includes(this.state(record)))
      .map(([id, record]) => ({ id, escalate: record.has('escalate') }));
  }
  get wasBroken() {
    return this.last('journal.broken').seq > 0;
  }
  /** The value of each reference of a call; undefined if one of them has none. */
  values(entry) {
    const references = this.last('intent.compiled').get('references') ?? [];
    const own = references.filter((one) => one.get('node_id') === entry.get('node_id'));
    const found = own.map((one) => {
      const result = latest(this.nodes.get(one.get(FROM)), 'call.finished');
      const source = result.get('status') === 'succeeded' ? result.get('result_text') : undefined;
      const json = source === undefined ? undefined : sourceAt(source, one.get('pointer'));
      const read = json === undefined ? undefined : readOne(json);
      return read && { place: one.get('place'), ref: refOf(one), json, value: read.value };
    });
    return found.includes(undefined) ? undefined : found;
  }
  key(entry) {
    return `${this.intentId}.${entry.get('node_id')}`;
  }
  /** The last question about the node since consent was last used. */
  question(entry) {
    const asked = this.of(entry, 'gate.asked');
    return asked.seq > this.of(entry, 'escalate').seq ? asked : NEVER;
  }
}

// ---- Answers and the keys that sign them. ----

const SIGNED_MEMBERS = ['displayed_sha256', 'approver', 'expires_at'];
const SIGNATURES = ['signature', 'passkey'];
const STATEMENT = ['answer', 'approved', 'call_sha256', 'displayed_sha256', 'expires_at'];
const DAY = 24 * 60 * 60 * 1000;

/**
 * Whether an approver has signed this answer; in a receipt from before signed answers, whether nothing claims a
 * signature.
 */
function answeredByKey(answer, past) {
  const needed = past.last('intent.accepted').get('rules') === 2;
  if (!needed && ![...SIGNED_MEMBERS, ...SIGNATURES].some((name) => answer.has(name))) return true;
  if (!SIGNED_MEMBERS.every((name) => answer.has(name))) return false;
  if (SIGNATURES.filter((name) => answer.has(name)).length !== 1) return false;
  const [at, until] = ['at', 'expires_at'].map((name) => instant(answer.get(name)));
  if (answer.get('displayed_sha256') !== past.question(answer).get('displayed_sha256')) return false;
  if (at >= until || until - at > DAY) return false;
  const said = STATEMENT.filter((name) => answer.has(name)).map((name) => [name, answer.get(name)]);
  const statement = canonical(new Map([...said, ['intent_id', past.intentId], ['node_id', answer.get('node_id')]]));
  return answer.has('passkey')
    ? assertedBy(answer.get('approver'), answer.get('passkey'), statement)
    : holdsUnder(answer.get('approver'), answer.get('signature'), Buffer.from(statement));
}

// ---- Passkeys. ----

const IDENTITY = ['credential_id', 'origin', 'public_key', 'rp_id'];
const POINT_OF_P256 = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';
const POINT_OF_ED25519 = '302a300506032b6570032100';
const WITHOUT_SHA256 = null;

/** Whether bytes are signed with a key of one of the three kinds. */
function signedWithAny(spki, signature, bytes) {
  const begins = (prefix, length) => spki.length === 2 * length && spki.startsWith(prefix);
  try {
    const key = createPublicKey({ key: Buffer.from(spki, 'hex'), format: 'der', type: 'spki' });
    const { modulusLength = 0 } = key.asymmetricKeyDetails;
    const isRsa = key.asymmetricKeyType === 'rsa' && modulusLength >= 2048 && modulusLength <= 4096;
    const isEdwards = begins(POINT_OF_ED25519, 44);
    if (!isRsa && !isEdwards && !begins(POINT_OF_P256, 91)) return false;
    return verifySignature(isEdwards ? WITHOUT_SHA256 : 'sha256', bytes, key, Buffer.from(signature, 'hex'));
  } catch {
    return false;
  }
}

/** Whether a passkey is an assertion of this approver over a text. */
function assertedBy(approver, passkey, text) {
  if (hashOf(without(passkey, (name) => !IDENTITY.includes(name))) !== approver) return false;
  const spoken = passkey.get('client_data');
  const client = readOne(spoken)?.value;
  if (!(client instanceof Map)) return false;
  const challenge = createHash('sha256').update(text).digest('base64url');
  const wanted = { type: 'webauthn.get', challenge, origin: passkey.get('origin') };
  if (Object.entries(wanted).some(([name, value]) => client.get(name) !== value)) return false;
  if (client.has('topOrigin') || (client.has('crossOrigin') && client.get('crossOrigin') !== false)) return false;
  const data = Buffer.from(passkey.get('authenticator_data'), 'hex');
  if (data.length < 37 || data.toString('hex', 0, 32) !== sha256(passkey.get('rp_id'))) return false;
  if ((data[32] & 0b101) !== 0b101) return false;
  const bytes = Buffer.concat([data, createHash('sha256').update(spoken).digest()]);
  return signedWithAny(passkey.get('public_key'), passkey.get('signature'), bytes);
}

/** Whether one of the approvers that the reader named approved this start. */
function approvedByNamed(start, past, approvers) {
  if (approvers.length === 0 || start.kind !== 'call.started' || start.get('surface') !== 'escalate') return true;
  const asked = past.of(start, 'call.decided').get('effect') === 'ask';
  return asked && approvers.includes(past.of(start, 'gate.answered').get('approver'));
}

const CALLS = 'call.decided call.tried gate.asked gate.answered gate.expired call.started call.finished';
const SETTLING = 'call.reconciled call.read_back';
const LATE = ['gate.refused', 'journal.broken'];

/** Rule, its kinds (`*` for all), and its condition. The order is the page's. */
const RULES = [
  [
    'begin',
    '*',
    (e) => (e.seq === 1 ? ['intent.accepted', 'journal.broken'].includes(e.kind) : e.kind !== 'intent.accepted'),
  ],
  [
    'journal',
    '*',
    (e, past) =>
      past.last('journal.broken', 'intent.failed', 'intent.unknown').kind !== 'journal.broken' ||
      [...LATE, 'intent.failed', 'intent.unknown'].includes(e.kind),
  ],
  [
    'end',
    '*',
    (e, past) => {
      const { kind, seq } = past.last(...ENDS, 'journal.broken');
      if (!ENDS.includes(kind) || LATE.includes(e.kind)) return true;
      if (kind !== 'intent.unknown') return false;
      return SETTLING.split(' ').includes(e.kind) || (ENDS.includes(e.kind) && past.last('call.reconciled').seq > seq);
    },
  ],
  ['intent', 'intent.accepted', (e, past) => e.get('intent_id') === past.intentId],
  ['task', 'intent.accepted', (e) => e.has('prose') !== e.has('intent')],
  [
    'compiled',
    'intent.compiled intent.clarify',
    (e, past) => {
      if (past.last('intent.compiled', 'intent.clarify').seq) return false;
      if (e.kind === 'intent.clarify') return true;
      const ids = idsOf(e.get('intent').get('plan'));
      return new Set(ids).size === ids.length && isTheTask(past.last('intent.accepted').get('intent'), e, past);
    },
  ],
  [
    'reference',
    'intent.compiled',
    (e) => {
      const references = e.get('references') ?? [];
      const places = references.map((one) => canonical([one.get('node_id'), one.get('place')]));
      return (
        new Set(places).size === places.length && references.every((one) => isPlanned(one, e.get('intent').get('plan')))
      );
    },
  ],
  ['node', CALLS, (e, past) => past.leaf(e, 'call')],
  ['node', SETTLING, (e, past) => past.wasBroken || past.leaf(e, 'call')],
  ['node', 'wait.started', (e, past) => past.leaf(e, 'wait')],
  ['reference', 'call.decided call.started', (e, past) => past.values(e) !== undefined],
  [
    'reference',
    'call.decided',
    (e, past) => {
      const told = (e.get('resolved') ?? []).map((one) => ['place', 'ref', 'json'].map((name) => one.get(name)));
      return canonical(told) === canonical(past.values(e).map(({ place, ref, json }) => [place, ref, json]));
    },
  ],
  [
    'plan',
    'call.decided call.started',
    (e, past) => {
      const [planned, call] = [past.leaf(e, 'call'), e.get('call')];
      const args = [filledIn(planned.get('args'), past.values(e)), call.get('args')];
      const same = args.map((one) => canonical(withoutKey(one, past.key(e))));
      return planned.get('tool') === call.get('tool') && same[0] === same[1];
    },
  ],
  [
    'question',
    'gate.asked',
    (e, past) => {
      const decision = past.of(e, 'call.decided');
      return (
        decision.get('effect') === 'ask' &&
        decision.seq > past.of(e, 'escalate').seq &&
        decision.get('call').get('call_sha256') === e.get('call_sha256')
      );
    },
  ],
  [
    'answer',
    'gate.answered gate.expired',
    (e, past) => {
      const question = past.question(e);
      return (
        question.seq > past.of(e, 'gate.answered', 'gate.expired').seq &&
        question.get('call_sha256') === e.get('call_sha256')
      );
    },
  ],
  ['answer', 'gate.answered', (e, past) => e.get('by') === past.last('intent.accepted').get('principal').get('user')],
  [
    'answer',
    'gate.answered',
    (e, past) => !e.get('approved') || instant(e.get('at')) <= instant(past.question(e).get('expires_at')),
  ],
  ['approver', 'gate.answered', answeredByKey],
  [
    'order',
    'call.started wait.started',
    (e, past) => leavesBefore(past.intent.get('plan'), e.get('node_id')).every((leaf) => past.done(leaf)),
  ],
  [
    'deadline',
    'call.started',
    (e, past) => !past.intent.has('deadline') || instant(e.get('at')) <= instant(past.intent.get('deadline')),
  ],
  [
    'once',
    'call.started',
    (e, past) =>
      e.get('surface') === 'escalate' || past.of(e, 'escalate').seq > 0
        ? ['not started', 'not_run'].includes(past.stateOf(e))
        : past.stateOf(e) !== 'succeeded',
  ],
  ['plan', 'call.started', (e, past) => !e.has('idempotency_key') || e.get('idempotency_key') === past.key(e)],
  [
    'decision',
    'call.started',
    (e, past) => {
      const decision = past.of(e, 'call.decided');
      return (
        ['allow', 'ask'].includes(decision.get('effect')) &&
        decision.get('surface') === e.get('surface') &&
        ['call_sha256', 'definition_sha256'].every(
          (hash) => decision.get('call').get(hash) === e.get('call').get(hash),
        ) &&
        decision.seq > past.of(e, 'escalate').seq
      );
    },
  ],
  [
    'consent',
    'call.started',
    (e, past) => {
      if (past.of(e, 'call.decided').get('effect') !== 'ask') return true;
      const question = past.question(e);
      const answer = past.of(e, 'gate.answered', 'gate.expired');
      return (
        question.seq > 0 &&
        answer.seq > question.seq &&
        answer.get('approved') === true &&
        question.get('call_sha256') === e.get('call').get('call_sha256') &&
        question.decision.get('call').get('definition_sha256') === e.get('call').get('definition_sha256')
      );
    },
  ],
  ['started', 'call.finished', (e, past) => past.stateOf(e) === 'started'],
  ['started', 'call.reconciled', (e, past) => past.wasBroken || ['started', 'unknown'].includes(past.stateOf(e))],
  ['started', 'call.read_back', (e, past) => past.wasBroken || past.stateOf(e) !== 'not started'],
  ['wait', 'wait.started', (e, past) => past.of(e, 'wait.started').seq === 0],
  [
    'wait',
    'wait.started',
    (e, past) => {
      const planned = past.leaf(e, 'wait');
      return !planned.has('until') || instant(planned.get('until')) === instant(e.get('until'));
    },
  ],
  ['wait', 'wait.finished', (e, past) => past.of(e, 'wait.started', 'wait.finished').kind === 'wait.started'],
  ['outcome', 'intent.completed', (_e, past) => past.intent && past.leaves.every((leaf) => past.done(leaf))],
  ['outcome', 'intent.failed intent.cancelled', (_e, past) => !past.open.some(({ escalate }) => escalate)],
  [
    'outcome',
    'intent.unknown',
    (e, past) =>
      (past.open.length > 0 || past.wasBroken) &&
      past.open.every(({ id, escalate }) => !escalate || e.get('nodes').includes(id)),
  ],
  ['journal', 'journal.broken', (e) => e.get('good_seq') === e.seq - 1],
].map(([rule, kinds, holds]) => ({
  rule,
  isAbout: kinds === '*' ? () => true : (kind) => kinds.split(' ').includes(kind),
  holds,
}));

/** Whether the compiled intent equals the submitted one, for a JSON submission. */
function isTheTask(source, compiled, past) {
  if (source === undefined) return true;
  try {
    const values = [...readEach(source)];
    const [task, intent] = [values[0], compiled.get('intent')].map((one) => canonical(keyless(one, past.intentId)));
    return values.length === 1 && task === intent;
  } catch (error) {
    if (error instanceof Unreadable) return false;
    throw error;
  }
}

// ---- The whole receipt. ----

const isKeyOf = (key, publicKey) =>
  key.startsWith('did:')
    ? publicKey.startsWith(key.slice(-16))
    : [publicKey, sha256(Buffer.from(publicKey, 'hex'))].includes(key);

/**
 * Checks one value from a file.
 * @param {unknown} found a receipt, or `{ok:true, data:<receipt>}`
 * @param {string} [key] the expected key
 * @param {string[]} [approvers] the expected approvers
 */
function verifyOne(found, key, approvers = []) {
  const receipt = isAnswer(found) ? found.get('data') : found;
  const broken = (seq, what, rule) => ({ ok: false, seq, what, ...(rule && { rule }) });
  if (!fits('receipt', receipt) || receipt.get('envelopes').length === 0) return broken(0, 'malformed');
  const publicKey = receipt.get('public_key');
  if (key !== undefined && !isKeyOf(key, publicKey)) return broken(0, 'key');

  const keyId = sha256(Buffer.from(publicKey, 'hex'));
  const past = new Past(receipt.get('intent_id'));
  const checks = [
    ['malformed', (envelope) => fits('envelope', envelope)],
    ['seq', (envelope, { seq }) => envelope.get('seq') === seq],
    ['key_id', (envelope) => envelope.get('key_id') === keyId],
    ['prev_hash', (envelope, { previous }) => envelope.get('prev_hash') === previous],
    ['signature', (envelope) => signed(envelope, publicKey)],
    ['malformed', (envelope) => hasShape(BODIES.get(envelope.get('kind')), envelope.get('body'))],
    ['digest', (envelope) => DIGESTS.get(envelope.get('kind'))?.(envelope.get('body')) ?? true],
  ];
  let previous = '0'.repeat(64);
  for (const [index, envelope] of receipt.get('envelopes').entries()) {
    const seq = index + 1;
    const failed = checks.find(([, holds]) => !holds(envelope, { seq, previous }));
    if (failed) return broken(seq, failed[0]);
    const body = envelope.get('body');
    const entry = { seq, kind: envelope.get('kind'), get: (name) => body.get(name), has: (name) => body.has(name) };
    const unkept = RULES.find(({ isAbout, holds }) => isAbout(entry.kind) && !holds(entry, past));
    if (unkept) return broken(seq, 'story', unkept.rule);
    if (!approvedByNamed(entry, past, approvers)) return broken(seq, 'approver');
    past.add(entry);
    previous = hashOf(envelope);
  }
  const end = past.last(...ENDS, 'journal.broken').kind;
  const endsWith = ENDS.includes(end) ? end : null;
  return { ok: true, intent_id: past.intentId, ends_with: endsWith, key: key === undefined ? 'claimed' : 'named' };
}

/**
 * Checks all receipts of a file, up to an unreadable part.
 * @param {string | Uint8Array} content
 * @param {string} [key] 64 hex digits of the public key or of its id, or `did:matrix:<label>:<16 hex digits>`
 * @param {string[]} [approvers] public keys, 64 hex digits each
 * @returns {object[]} a finding for each receipt, `{ok:false, what:'unreadable', why}` when it is unreadable
 * @throws if the key is invalid
 */
export function verify(content, key, approvers = []) {
  if (approvers.some((approver) => !/^[0-9a-f]{64}$/.test(approver))) throw new Unusable('no approver');
  if (key !== undefined && !/^(?:[0-9a-f]{64}|did:matrix:.+:[0-9a-f]{16})$/.test(key)) throw new Unusable('no key');
  const findings = [];
  try {
    const text = isText(content)
      ? content.replace(/^\ufeff/, '')
      : new TextDecoder('utf-8', { fatal: true }).decode(content);
    for (const value of readEach(text)) findings.push(verifyOne(value, key, approvers));
    if (findings.length === 0) throw new Unreadable('no receipt');
  } catch (error) {
    if (!(error instanceof Unreadable) && error.code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error;
    findings.push({ ok: false, what: 'unreadable', why: error.message });
  }
  return findings;
}

/** @returns {number} the exit status */
function main([file, ...options]) {
  const say = (finding) => stdout.write(`${JSON.stringify(finding)}\n`);
  try {
    const named = { '--key': [], '--approver': [] };
    for (let at = 0; at < options.length; at += 2) named[options[at]]?.push(options[at + 1]);
    const given = [...named['--key'], ...named['--approver']];
    const understood = file !== undefined && named['--key'].length <= 1 && given.length * 2 === options.length;
    if (!understood || given.includes(undefined))
      throw new Unusable('usage: verifier.mjs FILE|- [--key KEY] [--approver KEY]…');
    const small = (key) => (/^[0-9A-F]{64}$/i.test(key) ? key.toLowerCase() : key);
    const [key] = named['--key'].map(small);
    const findings = verify(readFileSync(file === '-' ? stdin.fd : file), key, named['--approver'].map(small));
    findings.forEach(say);
    return findings.every(({ ok }) => ok) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Unusable) && error.syscall === undefined) throw error;
    say({ ok: false, what: 'unusable', why: error.message });
    return 2;
  }
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) process.exitCode = main(argv.slice(2));
