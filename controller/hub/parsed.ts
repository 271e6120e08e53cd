import { z } from 'zod';

/** Parsed input: its value, or the problem as a message that names object and field. */
export type Parsed<T> =
  | { readonly value: T; readonly problem?: never }
  | { readonly value?: never; readonly problem: string };

/** Longest quoted value, in characters. */
const longestQuote = 200;
/** Longest text about one field, in characters. */
const longestProblem = 400;
/** Most fields that a message names. A condition takes 32 KiB. */
const mostProblems = 5;

/** A value in a message, as JSON; long ones are cut. */
export function quoted(value: unknown): string {
  return cut(value === undefined ? 'nothing' : jsonOf(value), longestQuote);
}

/** What a schema found, as a message that names the fields: the first five, and the number of the others. */
export function problemsOf({ issues }: z.ZodError, path?: string): string {
  const texts = issues.slice(0, mostProblems).map((issue) => {
    const field = [...(path === undefined ? [] : [path]), ...issue.path.map(partText)].join('.');
    return cut([field, issue.message].filter(Boolean).join(' '), longestProblem);
  });
  const others = issues.length - texts.length;
  return [...texts, ...(others > 0 ? [`and ${others} more`] : [])].join('; ');
}

/** A text with at most `most` characters. */
export function textOf(most: number) {
  return z.string().max(most, { error: `must have at most ${most} characters` });
}

/**
 * A list with at most `most` elements. A longer one is refused before its elements are parsed: an object of 1.5 MiB may have
 * half a million.
 */
export function listOf<T extends z.ZodType>(element: T, most: number, error?: z.core.$ZodErrorMap) {
  return z
    .unknown()
    .refine((value) => !Array.isArray(value) || value.length <= most, {
      error: ({ input }) => `must have at most ${most} entries, not ${(input as unknown[]).length}`,
    })
    .pipe(z.array(element, { error }));
}

/** An object with at most `most` members with names of any kind. A larger one is refused before its members are parsed. */
export function mapOf<T extends z.ZodType>(member: T, most: number) {
  return z
    .unknown()
    .refine((value) => typeof value !== 'object' || value === null || Object.keys(value).length <= most, {
      error: ({ input }) => `must have at most ${most} entries, not ${Object.keys(input as object).length}`,
    })
    .pipe(z.record(z.string(), member));
}

/** A part of a path. Names of members may hold anything. */
function partText(part: PropertyKey): string {
  const text = String(part);
  return /^[\w./-]+$/.test(text) ? text : jsonOf(text);
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return 'a value that is nested too deep';
  }
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
