import { closeSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs';
import type { Registry } from 'prom-client';
import { aborted, type Logger } from '../../lib/base/index.ts';
import { bearerTokenFrom, FatalError, HttpSink, instruments } from '../../lib/ops/index.ts';
import type { PrincipalFlags } from '../flags.ts';
import type { AuditRecord } from '../live/audit-record.ts';

/** Records of one request to the webhook. */
const batch = 100;

/** Where the records of live access go. */
export interface AuditLog {
  /** Takes a record. Never waits and never throws. */
  add(record: AuditRecord): void;
  /** Sends to the webhook until aborted, and closes the file. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * The audit that the flags ask for; undefined for none.
 * @throws FatalError when the file or the token cannot be opened
 */
export function auditLog(
  flags: Pick<
    PrincipalFlags,
    'audit-log-path' | 'audit-log-maxsize' | 'audit-webhook-url' | 'audit-webhook-token-path'
  >,
  registry: Registry,
  logger: Logger,
): AuditLog | undefined {
  const { 'audit-log-path': path, 'audit-webhook-url': url } = flags;
  if (path === '' && url === '') {
    return undefined;
  }
  const { counter, gauge } = instruments(registry);
  const file = path === '' ? undefined : new AuditFile(path, flags['audit-log-maxsize'] * 1024 * 1024, logger);
  const webhook = url === '' ? undefined : webhookOf(url, flags['audit-webhook-token-path'], logger);
  const records = counter('argocd_principal_audit_records_total', 'Requests of live access that were audited');
  gauge(
    'argocd_principal_audit_records_lost',
    'Audit records since the start that could not be written or delivered',
    () => (file?.lost ?? 0) + (webhook?.dropped ?? 0),
  );
  return {
    add: (record) => {
      records.inc();
      file?.write(record);
      webhook?.add(record);
    },
    async run(signal) {
      await (webhook?.run(signal) ?? aborted(signal));
      file?.close();
    },
  };
}

function webhookOf(url: string, tokenPath: string, logger: Logger): HttpSink<AuditRecord> {
  return new HttpSink<AuditRecord>({
    what: 'audit records',
    url,
    headers: bearerTokenFrom(tokenPath, 'audit-webhook-token-path'),
    batch,
    encode: (items) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify({ items }) }),
    logger,
  });
}

/** A file of JSON lines with at most one former file beside it. */
class AuditFile {
  readonly #path: string;
  readonly #mostBytes: number;
  readonly #logger: Logger;
  #fd: number;
  #bytes = 0;
  /** Records that could not be written. */
  lost = 0;

  constructor(path: string, mostBytes: number, logger: Logger) {
    this.#path = path;
    this.#mostBytes = mostBytes;
    this.#logger = logger;
    try {
      this.#fd = this.#open();
    } catch (cause) {
      throw new FatalError(`--audit-log-path cannot be written: ${(cause as Error).message}`, { cause });
    }
  }

  /** Synchronously: a record is there when the request is answered, and nothing waits in memory. */
  write(record: AuditRecord): void {
    const line = Buffer.from(`${JSON.stringify({ component: 'audit', ...record })}\n`);
    try {
      if (this.#mostBytes > 0 && this.#bytes > 0 && this.#bytes + line.length > this.#mostBytes && this.#fd !== 1) {
        this.#turn();
      }
      writeSync(this.#fd, line);
      this.#bytes += line.length;
    } catch (error) {
      if (this.lost === 0) {
        this.#logger.error({ error, path: this.#path }, 'audit records cannot be written and are lost');
      }
      this.lost++;
    }
  }

  #turn(): void {
    this.close();
    try {
      renameSync(this.#path, `${this.#path}.1`);
    } finally {
      this.#fd = this.#open();
    }
  }

  close(): void {
    if (this.#fd !== 1) {
      closeSync(this.#fd);
    }
  }

  #open(): number {
    if (this.#path === '-') {
      return 1;
    }
    const fd = openSync(this.#path, 'a', 0o600);
    this.#bytes = fstatSync(fd).size;
    return fd;
  }
}
