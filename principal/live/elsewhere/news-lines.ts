import { z } from 'zod';

/** A line of news: a message on a channel for a client's connection, or, without these, the arrival of the agent. */
export const newsLine = z.object({
  agent: z.string().max(63),
  connectionUuid: z.string().max(128).optional(),
  channel: z.string().optional(),
});

/** See {@link newsLine}. */
export type NewsLine = z.output<typeof newsLine>;
