import { Fault } from '../../shared/fault.ts'
import { givenKnowledge } from '../../runtime/signatures/knowledge-source.ts'
import { USAGE } from '../../terminal/arguments.ts'
import type { Arguments, CommandAction, ExitCode } from '../../terminal/command.ts'
import { CONFIG_OPTIONS } from '../../terminal/config-options.ts'
import type { Io } from '../../terminal/io.ts'
import { type PublishedTerms, publishedTerms } from '../../terms/published-terms.ts'
import { robotsForm } from '../../terms/robots-form.ts'
import { rslForm } from '../../terms/rsl-form.ts'
import { usageForm } from '../../terms/usage-form.ts'
import { givenPolicies } from '../check/given-policies.ts'
import { robotsFile } from './robots-file.ts'

export const publish: CommandAction = {
  name: 'publish',
  summary: 'Print the policy in the forms that crawlers read: robots.txt, Content-Usage, RSL',
  description: [
    'robots: a robots.txt (RFC 9309) with a group for each agent that the policy treats unlike other crawlers. With --robots, ' +
      "the app's own rules are kept: a crawler may get what both allow. --usage and --signals add Content-Usage rules (AIPREF) " +
      'and Content-Signal rules; --license adds the address of the RSL document.',
    'content-usage: the value of the header Content-Usage for each group of paths. rsl: the licence as an RSL 1.0 document.',
    'Only what is the same for each request of an honest crawler can be published. An agent that can be verified is taken as ' +
      'verified; an agent with several purposes gets what it would get with each of them. Rules whose paths stand in an ' +
      'expression are not published, and a warning names them.',
  ],
  operands: [{ name: 'FORM', description: 'What to print', choices: ['robots', 'content-usage', 'rsl'] }],
  options: [
    ...CONFIG_OPTIONS,
    { name: 'host', value: 'HOST', description: 'The site, if the policy tells hosts apart' },
    { name: 'robots', value: 'FILE', description: "With robots: the app's own robots.txt" },
    { name: 'usage', description: 'With robots: add Content-Usage rules' },
    { name: 'signals', description: 'With robots: add Content-Signal rules' },
    { name: 'license', value: 'URL', description: 'With robots: the address of the RSL document' },
    {
      name: 'apps',
      value: 'FILE',
      description: 'Apps and their policies (default: the apps of the settings)',
    },
    {
      name: 'app',
      value: 'ID',
      description: 'The app whose policy is published (default: that of the host)',
    },
  ],
  examples: [
    { command: 'publish robots --policy policy.yaml > robots.txt', description: 'What crawlers may get' },
    {
      command: 'publish robots --policy policy.yaml --robots public/robots.txt --usage',
      description: "With the app's own rules, and what the content may be used for",
    },
    { command: 'publish rsl --policy policy.yaml', description: 'The licence' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const [form] = given.operands
  const forRobots = ['robots', 'license'].filter((option) => given.value(option) !== null)
  const flags = ['usage', 'signals'].filter((option) => given.flag(option))
  if (form !== 'robots' && forRobots.length + flags.length > 0)
    throw new Fault(USAGE, `--${[...forRobots, ...flags][0]} goes with robots`)
  const terms = await givenTerms(given, io)
  io.stdout.write(Buffer.from(await textOf(form!, terms, given), 'latin1').toString())
  return 0
}

/** One character per byte: lines of the app's own file stay as they are. */
async function textOf(form: string, terms: PublishedTerms, given: Arguments): Promise<string> {
  if (form === 'rsl') return rslForm(terms)
  if (form === 'content-usage') return usageForm(terms)
  const file = given.value('robots')
  const own = file === null ? null : await robotsFile(file)
  return robotsForm(terms, {
    own,
    hasUsage: given.flag('usage'),
    hasSignals: given.flag('signals'),
    license: licenseIn(given.value('license')),
  })
}

function licenseIn(url: string | null): string | null {
  if (url !== null && !/^https?:\/\/[\x21-\x7e]+$/.test(url))
    throw new Fault(USAGE, '--license must be an absolute URL, like https://example.com/license.xml')
  return url
}

/** Of `--policy`, `--apps`, `--app` and `--host`, or of the configuration. Warnings go to standard error. */
export async function givenTerms(given: Arguments, io: Io): Promise<PublishedTerms> {
  const knowledge = await givenKnowledge(given, io)
  const policies = await givenPolicies(given, io, knowledge.names)
  const host = given.value('host')
  const app = policies.app ?? policies.index.appOf(host ?? '').id
  const terms = publishedTerms(policies.with(policies.policy)(app)!, knowledge, host, Date.now())
  for (const { rule } of terms.unlisted)
    io.stderr.write(
      `warning: rule "${rule}" is not published, because its paths stand in an expression; use \`path\`\n`,
    )
  return terms
}
