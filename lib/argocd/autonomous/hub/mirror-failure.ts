/** An Application or AppProject of an autonomous agent that cannot be shown on the hub as it is. */
export interface MirrorFailure {
  readonly agent: string;
  /** Left out: Application. */
  readonly kind?: 'Application' | 'AppProject';
  /** As the agent calls it. */
  readonly name: string;
  readonly message: string;
}
