import {
  type DestinationStream,
  multistream,
  type Logger as PinoLogger,
  pino,
  destination as pinoDestination,
} from 'pino';
import { UsageError } from './errors.ts';

/** The structured logger that programs pass down; make narrower ones with `child`. */
export type Logger = PinoLogger;

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

const components = ['resource-proxy', 'redis-proxy', 'grpc-event', 'informer-event-buffer'];

/**
 * A logger in one of the originals' two formats: `json` (keys `level`, `msg`, `time`) or `text` (`key=value` pairs, or
 * columns with colours on a terminal).
 * @throws UsageError for a level or format that does not exist
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const format = (options.format ?? 'text').toLowerCase();
  if (format !== 'text' && format !== 'json') {
    throw new UsageError(`--log-format: ${JSON.stringify(options.format)} is not one of: text, json`);
  }
  const { level, ignored } = rootLevel(typeof options.level === 'string' ? [options.level] : (options.level ?? []));
  const streams = options.destination
    ? { out: options.destination, err: options.destination }
    : { out: pinoDestination({ fd: 1, sync: true }), err: pinoDestination({ fd: 2, sync: true }) };
  const shape = (stream: DestinationStream, tty: boolean): DestinationStream =>
    format === 'json' ? stream : { write: (line) => void stream.write(tty ? columns(line) : pairs(line)) };
  const terminal = options.destination === undefined;
  const logger = pino(
    {
      level,
      base: options.name === undefined ? {} : { module: options.name },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label === 'warn' ? 'warning' : label }) },
      serializers: { error: describeError, err: describeError },
      errorKey: 'error',
    },
    multistream(
      [
        { level: 'trace', stream: shape(streams.out, terminal && process.stdout.isTTY === true) },
        { level: 'warn', stream: shape(streams.err, terminal && process.stderr.isTTY === true) },
      ],
      { dedupe: true },
    ),
  );
  for (const entry of ignored) logger.warn({ entry }, 'log level entry names no known component and is ignored');
  return logger;
}

function rootLevel(entries: readonly string[]): { level: string; ignored: string[] } {
  let level = 'info';
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
    if (right === undefined) level = known;
    else if (more.length > 0 || !components.includes(left)) ignored.push(entry);
  }
  return { level, ignored };
}

function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  // Where a mistake of ours happened is worth more than its text.
  const isMistake = error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
  return `${isMistake ? (error.stack ?? error.message) : error.message}${cause}`;
}

function fieldsOf(line: string): Record<string, unknown> & { level: string; time: string; msg?: string } {
  return JSON.parse(line) as Record<string, unknown> & { level: string; time: string; msg?: string };
}

function show(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /^[\w./:@+,-]+$/.test(text) ? text : printable(JSON.stringify(text));
}

/** Text of peers and objects must not steer the terminal or make up lines. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
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
