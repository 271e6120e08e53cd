import {
  type DestinationStream,
  multistream,
  type Logger as PinoLogger,
  pino,
  destination as pinoDestination,
} from 'pino';
import { networkOf } from '../base/index.ts';
import { describeError, UsageError } from './errors.ts';
import { FloodGate, type GatedLine } from './flood-gate.ts';
import { printable } from './printable.ts';

/** The structured logger that programs pass down; make narrower ones with `child`. */
export type ProgramLogger = PinoLogger;

/** How `createLogger` writes. */
export interface LoggerOptions {
  /** Shown as `module` in each line. */
  name?: string;
  /** `--log-level`: `level` or `component=level`; later entries win. Default `info`. */
  level?: string | readonly string[];
  /** `--log-format`. Default `text`. */
  format?: string;
  /** Where lines go; by default warnings and errors to stderr, the rest to stdout, as the originals do. */
  destination?: DestinationStream;
}

/** Level names of the originals to pino's. `warn` is taken too. */
const levels: Readonly<Record<string, string>> = {
  fatal: 'fatal',
  error: 'error',
  warning: 'warn',
  warn: 'warn',
  info: 'info',
  debug: 'debug',
  trace: 'trace',
};

const components = ['resource-proxy', 'redis-proxy', 'grpc-event', 'informer-event-buffer'] as const;

/** A part of a program whose log level can be set on its own: `--log-level grpc-event=debug`. */
export type LogComponent = (typeof components)[number];

/** The loggers of a program. */
export interface Loggers {
  readonly root: ProgramLogger;
  /** Lines of a component name it in field `component`; without a level of its own it logs from `info` on. */
  component(name: LogComponent): ProgramLogger;
}

/** The root of {@link createLoggers}, for programs without components. */
export function createLogger(options: LoggerOptions = {}): ProgramLogger {
  return createLoggers(options).root;
}

/**
 * Loggers in one of the originals' two formats: `json` (keys `level`, `msg`, `time`) or `text` (`key=value` pairs, or
 * columns with colours on a terminal).
 * @throws UsageError for a level or format that does not exist
 */
export function createLoggers(options: LoggerOptions = {}): Loggers {
  const format = (options.format ?? 'text').toLowerCase();
  if (format !== 'text' && format !== 'json') {
    throw new UsageError(`--log-format: ${JSON.stringify(options.format)} is not one of: text, json`);
  }
  const { root, byComponent, ignored } = logLevels(
    typeof options.level === 'string' ? [options.level] : (options.level ?? []),
  );
  const streams = options.destination
    ? { out: options.destination, err: options.destination }
    : { out: pinoDestination({ fd: 1, sync: true }), err: pinoDestination({ fd: 2, sync: true }) };
  const shape = (stream: DestinationStream, tty: boolean): DestinationStream =>
    format === 'json' ? stream : { write: (line) => void stream.write(tty ? columns(line) : pairs(line)) };
  const terminal = options.destination === undefined;
  const gate = new FloodGate();
  const logger = pino(
    {
      level: root,
      base: options.name === undefined ? {} : { module: options.name },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
      serializers: { error: describe },
      errorKey: 'error',
      hooks: {
        logMethod(line, write, level) {
          const gated = lineAboutPeer(line, boundPeer(this), level);
          const suppressed = gated === undefined ? 0 : gate.admit(gated);
          if (suppressed === undefined) {
            return;
          }
          const [fields, ...rest] = line;
          write.apply(this, suppressed === 0 ? line : [{ ...Object(fields), suppressed }, ...rest]);
        },
      },
    },
    multistream(
      [
        { level: 'trace', stream: shape(streams.out, terminal && process.stdout.isTTY === true) },
        { level: 'warn', stream: shape(streams.err, terminal && process.stderr.isTTY === true) },
      ],
      { dedupe: true },
    ),
  );
  for (const entry of ignored) {
    logger.warn({ entry }, 'log level entry names no known component and is ignored');
  }
  return {
    root: logger,
    component: (name) => logger.child({ component: name }, { level: byComponent.get(name) ?? 'info' }),
  };
}

/** As in the originals: a bare level counts for the root and for every component that is not named before it. */
function logLevels(entries: readonly string[]) {
  let root = 'info';
  const byComponent = new Map<LogComponent, string>();
  const named = new Set<LogComponent>();
  const ignored: string[] = [];
  for (const entry of entries) {
    const [left = '', right, ...more] = entry.split('=').map((part) => part.trim());
    const name = (right ?? left).toLowerCase() || 'info';
    const known = levels[name];
    if (known === undefined) {
      throw new UsageError(
        `--log-level: an invalid log level was entered: ${JSON.stringify(entry)} (one of: fatal, error, warning, info, debug, trace)`,
      );
    }
    const component = components.find((name) => name === left);
    if (right === undefined) {
      root = known;
      for (const other of components) {
        if (!named.has(other)) {
          byComponent.set(other, known);
        }
      }
    } else if (more.length > 0 || component === undefined) {
      ignored.push(entry);
    } else {
      named.add(component);
      byComponent.set(component, known);
    }
  }
  return { root, byComponent, ignored };
}

/** What is no error stays as it is. */
function describe(error: unknown): unknown {
  return error instanceof Error ? describeError(error) : error;
}

const warnLevel = 40;
/** As much of a message as tells its kind; what follows may be different in each line. */
const kindCharacters = 24;

/** The fields by which a line is about a peer of the program. */
interface PeerFields {
  readonly agent?: unknown;
  /** `address:port` of a connection. */
  readonly peer?: unknown;
}

const boundPeers = new WeakMap<PinoLogger, PeerFields>();

/** The fields of a child logger, which all its lines have. Reading them is slow, and they do not change. */
function boundPeer(logger: PinoLogger): PeerFields {
  let fields = boundPeers.get(logger);
  if (fields === undefined) {
    fields = logger.bindings();
    boundPeers.set(logger, fields);
  }
  return fields;
}

/** What the flood gate has to know of a line that a peer may cause as often as it likes; undefined for other lines. */
function lineAboutPeer(line: readonly unknown[], bound: PeerFields, level: number): GatedLine | undefined {
  const [first, second] = line;
  const isObject = typeof first === 'object' && first !== null;
  const fields: PeerFields = isObject ? { ...bound, ...first } : bound;
  const kind = String(isObject ? second : first).slice(0, kindCharacters);
  if (typeof fields.agent === 'string') {
    return { subject: `agent ${fields.agent}`, kind, class: level >= warnLevel ? 'warning' : 'info' };
  }
  if (typeof fields.peer === 'string') {
    return { subject: `peer ${networkOf(fields.peer.slice(0, fields.peer.lastIndexOf(':')))}`, kind, class: 'warning' };
  }
  return undefined;
}

function fieldsOf(line: string): Record<string, unknown> & { level: string; time: string; msg?: string } {
  return JSON.parse(line) as Record<string, unknown> & { level: string; time: string; msg?: string };
}

function show(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[\w./:@+,-]+$/.test(text) ? text : printable(JSON.stringify(text));
}

function pairs(line: string): string {
  const { level, time, msg, ...rest } = fieldsOf(line);
  const fields = Object.entries(rest).map(([key, value]) => ` ${key}=${show(value)}`);
  return `time="${time}" level=${level} msg=${printable(JSON.stringify(msg ?? ''))}${fields.join('')}\n`;
}

const colours: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 36, warning: 33, error: 31, fatal: 31 };

function columns(line: string): string {
  const { level, time, msg, ...rest } = fieldsOf(line);
  const colour = colours[level] ?? 0;
  const fields = Object.entries(rest).map(([key, value]) => ` \u001b[${colour}m${key}\u001b[0m=${show(value)}`);
  return `${time.slice(11, 23)} \u001b[${colour}m${level.toUpperCase().padEnd(7)}\u001b[0m ${printable(msg ?? '').padEnd(44)}${fields.join('')}\n`;
}
