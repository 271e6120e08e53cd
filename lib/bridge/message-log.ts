import type { Message } from '../argocd/index.ts';
import type { Logger } from '../base/index.ts';
import { type Detail, detailOf } from '../ops/index.ts';
import { targets } from '../wire/index.ts';

/** Logs a message with its content. */
export type MessageLog = (direction: 'sent' | 'received', message: Message) => void;

/**
 * Logs whole messages when `--full-detail` names `events`, with `fields` added to each line; otherwise it does nothing.
 * The content of repositories, which are Secrets, is never logged.
 */
export function messageLog(detail: Detail, logger: Pick<Logger, 'info'>, fields: object = {}): MessageLog {
  if (!detail.has('events')) {
    return () => undefined;
  }
  return (direction, message) => {
    const { target, type } = message;
    const content = 'object' in message ? message.object : message;
    const shown = detailOf(content, target === targets.repository ? 'Secret' : undefined);
    logger.info(
      { ...fields, log_category: 'events', direction, event_target: target, event_type: type, detail: shown },
      'event in full',
    );
  };
}
