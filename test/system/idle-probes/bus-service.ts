/**
 * A service on a real D-Bus bus, with the needed part of the protocol (D-Bus specification 0.43). It owns names and
 * answers each call as scripted, or not at all.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Owner, temporaryFolder } from '../../support/temporary.ts';
import { type BusMessage, encodeMessage, MESSAGE, readMessage, uint32At } from './bus-message.ts';
import { pathOf } from './desktop-tools.ts';
import { startProgram } from './started-program.ts';

/** The answer of a method: an unsigned number of 64 or 32 bits, a text, an error by its name, or none. */
export type BusAnswer = { t: bigint } | { u: number } | { s: string } | { error: string } | 'silence';

/** A bus gives a name to its first owner; 4 means that this connection already owns it. */
const OWNED = new Set([1, 4]);

export class BusService {
  /** The called methods, by name, latest last, without those of the bus itself. */
  readonly calls: string[] = [];
  /** Their arguments, unchanged. */
  readonly bodies: Buffer[] = [];
  readonly #socket: Socket;
  readonly #answers: Map<string, BusAnswer>;
  readonly #replies = new Map<number, (message: BusMessage) => void>();
  #serial = 0;
  #unread: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket, answers: Map<string, BusAnswer>) {
    this.#socket = socket;
    this.#answers = answers;
  }

  /**
   * @param socketPath of the bus
   * @param names to own
   * @param answers by `path interface.method`; may change while it runs
   */
  static async start(
    socketPath: string,
    names: readonly string[],
    answers: Map<string, BusAnswer>,
  ): Promise<BusService> {
    const socket = connect(socketPath);
    await once(socket, 'connect');
    const uid = Buffer.from(String(process.getuid!())).toString('hex');
    socket.write(`\0AUTH EXTERNAL ${uid}\r\n`);
    const [greeting] = await once(socket, 'data');
    if (!String(greeting).startsWith('OK ')) throw new Error(`the bus refused the connection: ${greeting}`);
    socket.write('BEGIN\r\n');
    const service = new BusService(socket, answers);
    socket.on('data', (chunk) => service.#take(chunk));
    await service.#queryBus('Hello', '', []);
    for (const name of names) {
      const reply = await service.#queryBus('RequestName', 'su', [name, 0]);
      if (!OWNED.has(uint32At(reply.body, 0))) throw new Error(`the bus did not give the name ${name}`);
    }
    return service;
  }

  async stop(): Promise<void> {
    if (this.#socket.destroyed) return;
    this.#socket.destroy();
    await once(this.#socket, 'close');
  }

  #queryBus(member: string, signature: string, body: readonly (string | number)[]): Promise<BusMessage> {
    const serial = ++this.#serial;
    const bus = {
      path: '/org/freedesktop/DBus',
      interface: 'org.freedesktop.DBus',
      destination: 'org.freedesktop.DBus',
    };
    this.#socket.write(encodeMessage({ type: MESSAGE.call, serial, ...bus, member, signature, body }));
    return new Promise((resolve) => this.#replies.set(serial, resolve));
  }

  #take(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    for (;;) {
      const message = readMessage(this.#unread);
      if (message === undefined) return;
      this.#unread = this.#unread.subarray(message.length);
      if (message.replySerial !== undefined) this.#replies.get(message.replySerial)?.(message);
      if (message.type === MESSAGE.call) this.#answer(message);
    }
  }

  #answer(call: BusMessage): void {
    this.calls.push(call.member!);
    this.bodies.push(call.body);
    const answer = this.#answers.get(`${call.path} ${call.interface}.${call.member}`) ?? {
      error: 'org.freedesktop.DBus.Error.UnknownMethod',
    };
    if (answer === 'silence') return;
    const reply = { serial: ++this.#serial, replySerial: call.serial, destination: call.sender! };
    if ('error' in answer) {
      this.#socket.write(
        encodeMessage({ ...reply, type: MESSAGE.error, errorName: answer.error, signature: '', body: [] }),
      );
      return;
    }
    const [[signature, value]] = Object.entries(answer) as [[string, bigint | number | string]];
    this.#socket.write(encodeMessage({ ...reply, type: MESSAGE.reply, signature, body: [value] }));
  }
}

/** A private session bus. @returns the path of its socket */
export async function startBus(t: Owner): Promise<string> {
  const socket = join(temporaryFolder(t), 'bus');
  const options = ['--session', '--nofork', '--print-address=3', `--address=unix:path=${socket}`];
  await startProgram(t, pathOf('dbus-daemon'), options, 3);
  return socket;
}
