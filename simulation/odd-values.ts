import type { Application } from '../lib/argocd/index.ts';
import type { Unkindness } from './unkindness.ts';

/** What makes users edit values. */
const written = ['values', 'nulls', 'prototypeKeys', 'large'] as const;

type Values = Readonly<Record<string, unknown>>;

/** Few, so that edits meet. */
const keys = ['a', 'b', 'image', 'größe', 'имя'];
/** A key of an object in JSON like any other. */
const prototypeKeys = ['constructor', '__proto__', 'toString', 'hasOwnProperty'];
const plain = ['', 'text', 0, 1, -1, true, false];
const odd = ['日本語', '🎛\u0000\u2028"\\', 0.1, -1.5e-9, 1e21, 2 ** 53 - 1, {}, [], [[]], [{}], 'null', '1.0'];

/** Helm values as users write them: everything that JSON can say. */
export class OddValues {
  readonly #unkind: Unkindness;

  constructor(unkind: Unkindness) {
    this.#unkind = unkind;
  }

  /** Whether values are edited in this history. */
  get isOn(): boolean {
    return written.some((one) => this.#unkind.has(one));
  }

  /** The Application with other Helm values, and perhaps other labels. */
  edit(application: Application): Application {
    const { metadata, spec } = application;
    if (this.#unkind.strikes('prototypeKeys', 0.3)) {
      const former = metadata.labels ?? {};
      const { constructor: _, ...others } = former;
      const labels = Object.hasOwn(former, 'constructor') ? others : { ...others, constructor: 'x' };
      return { ...application, metadata: { ...metadata, labels } };
    }
    const source = (spec.source ?? {}) as { readonly helm?: { readonly valuesObject?: Values } };
    const valuesObject = this.#edited(source.helm?.valuesObject ?? {});
    return { ...application, spec: { ...spec, source: { ...source, helm: { ...source.helm, valuesObject } } } };
  }

  /** Other values than these, most of them the same. */
  #edited(values: Values): Values {
    const { dice } = this.#unkind;
    if (dice.chance(0.2)) {
      return Object.fromEntries(Array.from({ length: dice.integer(0, 3) }, () => [this.#key(), this.#value(0)]));
    }
    const key = this.#key();
    const former = Object.hasOwn(values, key) ? values[key] : undefined;
    const others = Object.fromEntries(Object.entries(values).filter(([each]) => each !== key));
    if (former !== undefined && dice.chance(0.3)) {
      return others;
    }
    const isMap = former !== null && typeof former === 'object' && !Array.isArray(former);
    return Object.fromEntries([
      ...Object.entries(others),
      [key, isMap && dice.chance(0.7) ? this.#edited(former as Values) : this.#value(0)],
    ]);
  }

  #key(): string {
    const { dice } = this.#unkind;
    return dice.pick(this.#unkind.strikes('prototypeKeys', 0.4) ? prototypeKeys : keys) ?? '';
  }

  #value(depth: number): unknown {
    const { dice } = this.#unkind;
    if (this.#unkind.strikes('nulls', 0.3)) {
      return null;
    }
    if (this.#unkind.strikes('large', 0.2)) {
      return 'x'.repeat(dice.integer(1, 7) * 100_000);
    }
    if (depth < 3 && dice.chance(0.4)) {
      const entries = Array.from({ length: dice.integer(1, 3) }, () => [this.#key(), this.#value(depth + 1)]);
      return dice.chance(0.2) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
    }
    return dice.pick(this.#unkind.has('values') && dice.chance(0.6) ? odd : plain);
  }
}
