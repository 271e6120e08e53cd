import { expect, test } from 'vitest';
import { readCommands, readFlags } from './commands.ts';
import { readEnvironment } from './environment.ts';
import { goConstants, goText, withoutComments } from './go-source.ts';
import { readMetrics } from './metrics.ts';
import { readTests } from './tests.ts';

const file = (text: string, name = 'a.go') => new Map([[name, withoutComments(text)]]);
const namesOf = (facts: readonly { readonly name: string }[]) => facts.map(({ name }) => name);

test('comments are no Go, and what looks like them in texts is', () => {
  const source = 'a("// no") /* "x" */ + `/* ` + \'"\' // "y"\n+ "\\"//"';
  expect(withoutComments(source)).toBe('a("// no")   + `/* ` + \'"\'  \n+ "\\"//"');
});

test('flags of every form, and nothing else that a set of flags can be asked', () => {
  const source = `
    flag.StringVar(&mode, "mode", "controller", "Mode to run")
    flag.IntVar(&options.Interval, "sync-interval", options.Interval, "…")
    // flag.StringVar(&old, "former", "", "…")
    c.Flags().StringSliceVarP(&labels, "label", "l", []string{}, "…")
    c.Flags().DurationVar(&wait,
      "wait",
      env.DurationWithDefault("WAIT", nil, 0), "…")
    c.PersistentFlags().Bool("all", false, "…")
    fs.VarP(&level, "level", "v", "…")
    c.Flags().Float64Var(&share, "share", 1, "…")
    flags.StringToStringVar(&map, "set", nil, "…")
    if c.Flags().Changed("wait") || c.Flags().Lookup("other") != nil { c.Flags().Set("third", "x") }
    c.MarkFlagRequired("fourth")`;
  expect(namesOf(readFlags('p', file(source)))).toEqual(
    ['mode', 'sync-interval', 'label', 'wait', 'all', 'level', 'share', 'set'].map((name) => `p --${name}`),
  );
});

test('commands have the names of those above them, and the flags of the functions that they call', () => {
  const source = `
func NewRoot() *cobra.Command {
	command := &cobra.Command{
		Use: "tool",
	}
	command.AddCommand(NewPKI())
	addGlobals(command, opts)
	return command
}

func addGlobals(command *cobra.Command, opts *Options) {
	command.PersistentFlags().StringVar(&opts.context, "context", "", "…")
}

func NewPKI() *cobra.Command {
	command := &cobra.Command{Use: "pki"}
	command.AddCommand(NewIssue())
	return command
}

func NewIssue() *cobra.Command {
	command := &cobra.Command{Use:   "issue <component>", Short: "…"}
	command.Flags().IntVar(&days, "days", 365, "…")
	other(days)
	return command
}

func NotACommand() {
	other.Flags().IntVar(&days, "never", 1, "…")
}
`;
  const facts = readCommands(file(source));
  expect(facts.map(({ kind, name, within }) => [kind, name, within])).toEqual([
    ['commands', 'tool', undefined],
    ['flags', 'tool --context', 'tool'],
    ['commands', 'tool pki', 'tool'],
    ['commands', 'tool pki issue', 'tool pki'],
    ['flags', 'tool pki issue --days', 'tool pki issue'],
  ]);
});

test('a command that adds itself has an end', () => {
  const source =
    'func A() {\n\tc := &cobra.Command{Use: "a"}\n\tc.AddCommand(B())\n}\nfunc B() {\n\tc.AddCommand(B())\n\tUse: "b",\n}\n';
  expect(namesOf(readCommands(file(source)))).toEqual(['a', 'a b']);
});

test('environment variables by name and by constant; a parameter is none', () => {
  const sources = new Map([
    ['config.go', 'package config\nconst EnvQPS = "TOOL_QPS"\nvar EnvBurst string = "TOOL_BURST"\n'],
    [
      'main.go',
      `env.StringWithDefault("TOOL_NAME", nil, "")
       env.NumWithDefault(config.EnvQPS, nil, 1)
       env.NumWithDefault[int](
         EnvBurst, nil, 1)
       v, ok := os.LookupEnv("TOOL_SET")
       os.Getenv(config.EnvOfAnotherModule)
       os.LookupEnv(key)`,
    ],
  ]);
  expect(namesOf(readEnvironment(sources))).toEqual([
    'TOOL_NAME',
    'TOOL_QPS',
    'TOOL_BURST',
    'TOOL_SET',
    'config.EnvOfAnotherModule',
  ]);
});

test('a name that stands for two texts is no constant, and a constant that is not exported is one in its own file', () => {
  const one = 'const A = "1"\nconst B = "2"\nconst prefix = "p"';
  const constants = goConstants([one, 'const B = "3"\nvar name = "4"']);
  expect([...constants('')]).toEqual([['A', '1']]);
  expect(goText('x.A + "_b" + prefix', constants(''))).toBe('1_b…');
  expect(goText('prefix + B', constants(one))).toBe('p…');
});

test('metrics by their options and descriptions', () => {
  const source = `
    promauto.NewCounterVec(prometheus.CounterOpts{
      ConstLabels: prometheus.Labels{"Name": "no"},
      Name: "tool_requests_total",
    }, []string{"code"})
    prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tool", Subsystem: Sub, Name: "depth"})
    prometheus.HistogramOpts{Name: prefix + "_seconds", Buckets: []float64{1, 2}}
    const Sub = "queue"
    prometheus.NewDesc(
      "tool_info",
      "Information", nil, nil)
    prometheus.NewDesc(prometheus.BuildFQName("tool", "", "up"), "…", nil, nil)
    prometheus.NewDesc(name, help, labels, nil)
    metav1.ObjectMeta{Name: "no"}`;
  expect(namesOf(readMetrics(file(source)))).toEqual([
    'tool_requests_total',
    'tool_queue_depth',
    '…_seconds',
    'tool_info',
    'tool_up',
  ]);
});

test('tests of suites, of functions and of Ginkgo, and not what starts them', () => {
  const source = `
func (suite *SyncSuite) Test_Managed() {
}

func (suite *SyncSuite) SetupTest() {
}

func TestSyncSuite(t *testing.T) {
	suite.Run(t, new(SyncSuite))
}

func TestPlain(t *testing.T) {
	t.Log()
}

var _ = Describe("Pull", Label("x"), func() {
	It("starts", func() {})
	Context("Clusters", func() {
		It("says \\"hello\\"", func() {})
	})
})
`;
  expect(namesOf(readTests(file(source)))).toEqual([
    'SyncSuite.Test_Managed',
    'TestPlain',
    'Pull / starts',
    'Pull / Clusters / says \\"hello\\"',
  ]);
});
