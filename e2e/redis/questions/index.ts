import type { Question } from '../ask.ts';
import { byteQuestions } from './bytes.ts';
import { channelQuestions } from './channels.ts';
import { connectionQuestions, passwordQuestions } from './connection.ts';
import { keyQuestions } from './keys.ts';
import { trackingQuestions } from './tracking.ts';
import { transactionQuestions } from './transactions.ts';

/** The questions about one matter, and the password of the Redis that they are for. */
export interface QuestionGroup {
  readonly about: string;
  readonly password?: string;
  readonly questions: readonly Question[];
}

/** Everything that tests, programs and their clients ask a Redis, with the answers of the real one. */
export const questionGroups: readonly QuestionGroup[] = [
  { about: 'connections', questions: connectionQuestions },
  { about: 'passwords', password: 'secret', questions: passwordQuestions },
  { about: 'keys', questions: keyQuestions },
  { about: 'channels', questions: channelQuestions },
  { about: 'tracking', questions: trackingQuestions },
  { about: 'transactions', questions: transactionQuestions },
  { about: 'odd bytes', questions: byteQuestions },
];
