/**
 * D-Bus messages as bytes, little-endian, with the types of a desktop's idle time (D-Bus specification 0.43, "Message
 * Format").
 */

export const MESSAGE = { call: 1, reply: 2, error: 3 } as const;

export type BusMessage = {
  type: number;
  serial: number;
  path?: string;
  interface?: string;
  member?: string;
  errorName?: string;
  replySerial?: number;
  destination?: string;
  sender?: string;
  body: Buffer;
  /** Of the whole message, in bytes. */
  length: number;
};

export type OutgoingMessage = Omit<BusMessage, 'body' | 'length'> & {
  /** The type of each member of the body: `s`, `u` or `t`. */
  signature: string;
  body: readonly (string | number | bigint)[];
};

/** Codes and types of header fields. */
const FIELDS = [
  ['path', 1, 'o'],
  ['interface', 2, 's'],
  ['member', 3, 's'],
  ['errorName', 4, 's'],
  ['replySerial', 5, 'u'],
  ['destination', 6, 's'],
  ['sender', 7, 's'],
  ['signature', 8, 'g'],
] as const;

const HEADER_BYTES = 16;
const aligned = (offset: number, to: number) => Math.ceil(offset / to) * to;

export const uint32At = (buffer: Buffer, offset: number) => buffer.readUInt32LE(offset);

/** Bytes with the padding that D-Bus requires before its types. */
class Writer {
  bytes: Buffer = Buffer.alloc(0);

  align(to: number): this {
    return this.raw(Buffer.alloc(aligned(this.bytes.length, to) - this.bytes.length));
  }

  raw(bytes: Buffer): this {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    return this;
  }

  value(type: string, value: string | number | bigint): this {
    if (type === 'g') return this.raw(Buffer.from([String(value).length])).raw(Buffer.from(`${value}\0`));
    if (type === 't') {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64LE(BigInt(value));
      return this.align(8).raw(bytes);
    }
    const number = Buffer.alloc(4);
    number.writeUInt32LE(type === 'u' ? Number(value) : Buffer.byteLength(String(value)));
    this.align(4).raw(number);
    return type === 'u' ? this : this.raw(Buffer.from(`${value}\0`));
  }
}

export function encodeMessage(message: OutgoingMessage): Buffer {
  const body = new Writer();
  for (const [index, type] of [...message.signature].entries()) body.value(type, message.body[index]!);
  const fields = new Writer();
  for (const [name, code, type] of FIELDS) {
    const value = message[name];
    if (value === undefined || value === '') continue;
    fields
      .align(8)
      .raw(Buffer.from([code]))
      .value('g', type)
      .value(type, value);
  }
  const header = new Writer().raw(Buffer.from(['l'.charCodeAt(0), message.type, 0, 1]));
  header.value('u', body.bytes.length).value('u', message.serial).value('u', fields.bytes.length);
  return header.raw(fields.bytes).align(8).raw(body.bytes).bytes;
}

/** @returns the first message in the bytes; `undefined` while it is incomplete */
export function readMessage(bytes: Buffer): BusMessage | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  if (bytes[0] !== 'l'.charCodeAt(0)) throw new Error('the message is not little-endian');
  const end = HEADER_BYTES + uint32At(bytes, 12);
  const bodyAt = aligned(end, 8);
  const length = bodyAt + uint32At(bytes, 4);
  if (bytes.length < length) return undefined;
  const fields: Record<string, string | number> = {};
  for (let at = HEADER_BYTES; at < end; at = aligned(at, 8)) {
    const name = FIELDS.find(([, code]) => code === bytes[at])?.[0];
    const type = String.fromCharCode(bytes[at + 2]!);
    // A code, a signature of one type (its length, the type, a zero), the value.
    at += 4;
    const [value, next] = valueAt(bytes, type, at);
    if (name !== undefined) fields[name] = value;
    at = next;
  }
  return { ...fields, type: bytes[1]!, serial: uint32At(bytes, 8), body: bytes.subarray(bodyAt, length), length };
}

/** @returns the value, and the offset of its end */
function valueAt(bytes: Buffer, type: string, at: number): [string | number, number] {
  if (type === 'g') return [bytes.toString('utf8', at + 1, at + 1 + bytes[at]!), at + 2 + bytes[at]!];
  const start = aligned(at, 4);
  const number = uint32At(bytes, start);
  if (type === 'u') return [number, start + 4];
  if (type !== 's' && type !== 'o') throw new Error(`a header field of type ${type}`);
  return [bytes.toString('utf8', start + 4, start + 4 + number), start + 5 + number];
}
