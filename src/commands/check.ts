import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Document, isNode } from 'yaml'
import { loadConfig, type ParsedConfig, type StartupConfig } from '../config.ts'
import { policyWarnings } from '../policy/policy.ts'
import { ConfigFault, nameOf, type Problem, parsePolicyText } from '../config-source.ts'
import { Fault } from '../fault.ts'
import { AsnFile } from '../identity/asn-file.ts'
import { PUBLISHED_KEYS } from '../identity/published-keys.ts'
import { loadKeyPairs } from '../proxy/key-pair.ts'
import { USAGE } from './arguments.ts'
import { explainRequest } from './check-explain.ts'
import { replaySightings } from './check-replay.ts'
import type { Action, Arguments, ExitCode } from './command.ts'
import { CONFIG_OPTIONS, configFlags } from './config-options.ts'
import type { Io } from './io.ts'
import { loadWeights } from './knowledge-files.ts'
import { TicketKeyPart } from './live-parts.ts'
import { loadContent } from './signature-content.ts'
import { signingKeysIn } from './signing-key-file.ts'

export const check: Action = {
  name: 'check',
  summary: 'Check a configuration and show what is in force',
  description: [
    'Takes the flags of "up" and reads the same file and the same variables, then the policy, signatures, weights, ' +
      'certificates and keys they name. Prints all that is wrong, and where (exit code 1), or the configuration in force: each value with ' +
      'who gave it, secrets redacted. What is allowed and risky is said on standard error.',
    'With --explain: what becomes of one request, which rules hold, and why not. The file is JSON or YAML: method, host, ' +
      'path, http (1.1 or 2), address, headers (a mapping, or a list of [name, value]), ja4, ja4h, stable, http2, hello ' +
      '(not-tls, malformed), and verdict (kind, agent, software, confidence, verified, signer, evidence); all are optional. ' +
      'Without a verdict it is made of the rest, as for the first request of a connection, by the signatures that come ' +
      'with Gatehouse and those of the configuration, and shown with its evidence: give all headers in their order. ' +
      'Without http it is 2 where ja4 or http2 say so. The policy is the one --policy names, or the configuration.',
    'With --replay: what the policy would have done to the Sightings in a file (see the setting sightings.file), against ' +
      'what was done, or against another policy: what changes, for whom, and which rules cannot be judged, as Sightings ' +
      'keep no headers but User-Agent, and no queries.',
    'config/README.md has every setting.',
  ],
  operands: [],
  options: [
    ...CONFIG_OPTIONS,
    {
      name: 'explain',
      value: 'FILE',
      description: 'Say what the policy does to the request in FILE, and why',
    },
    {
      name: 'replay',
      value: 'FILE',
      description: 'Say what the policy would change of the Sightings in FILE',
    },
    { name: 'against', value: 'FILE', description: 'The policy it is compared with; without, what was done' },
    { name: 'json', description: 'Print JSON' },
  ],
  examples: [
    { command: 'check --config gatehouse.yaml', description: 'Before a restart' },
    { command: 'check --upstream http://127.0.0.1:3000', description: 'Every default' },
    { command: 'check --explain request.json --policy policy.yaml', description: 'Why a request is blocked' },
    {
      command: 'check --replay sightings.jsonl --policy new.yaml --against old.yaml',
      description: 'Who would notice a change',
    },
  ],
  run,
}

interface Report {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  readonly parsed: ParsedConfig | null
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const request = given.value('explain')
  const sightings = given.value('replay')
  if (request !== null && sightings !== null) throw new Fault(USAGE, 'either --explain or --replay')
  if (sightings === null && given.value('against') !== null)
    throw new Fault(USAGE, '--against goes with --replay')
  if (request !== null) return explainRequest(request, given, io)
  if (sightings !== null) return replaySightings(sightings, given, io)
  const report = await reportOn(given, io)
  if (given.flag('json')) io.stdout.write(`${JSON.stringify(json(report), null, 2)}\n`)
  else printed(report, io)
  return report.problems.length === 0 ? 0 : 1
}

async function reportOn(given: Arguments, io: Io): Promise<Report> {
  try {
    const parsed = loadConfig(configFlags(given), given.value('config'), io.env)
    const inFiles = await checkFiles(parsed.config)
    return { problems: inFiles.problems, warnings: [...parsed.warnings, ...inFiles.warnings], parsed }
  } catch (error) {
    return { problems: problemsOf(error, 'settings'), warnings: [], parsed: null }
  }
}

/** What the files that are named hold. All of them are looked at, whatever is wrong with the first. */
async function checkFiles({
  proxy,
  policy,
  signatures,
  weights,
  feeds,
  identity,
  signing,
}: StartupConfig): Promise<Omit<Report, 'parsed'>> {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const attempt = async (where: string, look: () => Promise<readonly string[]>) => {
    try {
      for (const what of await look()) warnings.push({ where, what })
    } catch (error) {
      problems.push(...problemsOf(error, where))
    }
  }
  const { certificates, clientCaFile, ticketKeyFile } = proxy.tls
  if (certificates.length === 0) warnings.push(NO_CERTIFICATE)
  for (const [index, { certificateFile, keyFile, passphrase }] of certificates.entries()) {
    const source = { certificateFile, keyFile, passphrase: passphrase?.reveal() ?? null }
    await attempt(`proxy.tls.certificates[${index}]`, async () => {
      return (await loadKeyPairs([source], Date.now())).warnings
    })
  }
  if (clientCaFile !== null) await attempt('proxy.tls.client_ca_file', () => checkCa(clientCaFile))
  if (ticketKeyFile !== null) {
    await attempt('proxy.tls.ticket_key_file', async () => {
      await new TicketKeyPart(ticketKeyFile, () => undefined).load()
      return []
    })
  }
  for (const [index, { tls }] of proxy.upstreams.entries()) {
    const { caFile } = tls
    if (caFile !== null) await attempt(`proxy.upstreams[${index}].tls.ca_file`, () => checkCa(caFile))
  }
  const names = proxy.upstreams.map(({ name }) => name)
  if (policy.file !== null) await attempt('policy.file', () => checkPolicy(policy.file!, names))
  if (signatures.length > 0) await attempt('signatures', () => checkSignatures(signatures))
  if (weights.file !== null) await attempt('weights.file', () => checkWeights(weights.file!))
  for (const [index, { caFile }] of feeds.entries()) {
    if (caFile !== null) await attempt(`feeds[${index}].ca_file`, () => checkCa(caFile))
  }
  const { asnFile } = identity
  if (asnFile !== null)
    await attempt('identity.asn_file', async () => {
      await AsnFile.load(asnFile)
      return []
    })
  const { keyFile } = signing
  if (keyFile !== null) await attempt('signing.key_file', () => checkSigningKeys(keyFile))
  return { problems, warnings }
}

async function checkPolicy(file: string, upstreams: readonly string[]): Promise<readonly string[]> {
  return policyWarnings(parsePolicyText((await read(file)).toString('utf8'), file, upstreams).policy)
}

async function checkSignatures(paths: readonly string[]): Promise<readonly string[]> {
  await loadContent({ feeds: [], paths, weightsFile: null })
  return []
}

async function checkWeights(file: string): Promise<readonly string[]> {
  await loadWeights(file)
  return []
}

async function checkSigningKeys(file: string): Promise<readonly string[]> {
  const published = (await signingKeysIn(file)).filter(({ thumbprint }) => PUBLISHED_KEYS.has(thumbprint))
  return published.map(
    ({ thumbprint }) => `${thumbprint} in ${file} is a published key for tests: everybody can sign with it`,
  )
}

async function checkCa(file: string): Promise<readonly string[]> {
  const blocks = (await read(file)).toString('latin1').match(PEM_CERTIFICATE)
  if (blocks === null) throw new Fault('CERTIFICATE_INVALID', `${file} holds no certificate in PEM`)
  return blocks.flatMap((block, index) => {
    const which = `certificate ${index + 1} in ${file}`
    try {
      const { validTo, validToDate } = new X509Certificate(block)
      return validToDate.getTime() > Date.now() ? [] : [`${which} expired on ${validTo}`]
    } catch (error) {
      throw new Fault('CERTIFICATE_INVALID', `${which} is damaged`, { cause: error })
    }
  })
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}

function problemsOf(error: unknown, where: string): readonly Problem[] {
  if (error instanceof ConfigFault) return error.problems
  if (error instanceof Fault) return error.message.split('\n').map((what) => ({ where, what }))
  throw error
}

function printed({ problems, warnings, parsed }: Report, io: Io): void {
  for (const { where, what } of warnings) io.stderr.write(`warning: ${where}: ${what}\n`)
  for (const { where, what } of problems) io.stderr.write(`${where}: ${what}\n`)
  if (problems.length === 0) io.stdout.write(effectiveYaml(parsed!))
}

function json({ problems, warnings, parsed }: Report): object {
  const effective = problems.length === 0 ? (parsed?.effective ?? []) : []
  return {
    valid: problems.length === 0,
    problems,
    warnings,
    settings: effective.map(({ pointer, value, from }) => ({ name: nameOf(pointer), value, from })),
  }
}

/** What is in force, as a file that says the same, with who said it behind each value. */
function effectiveYaml({ effective }: ParsedConfig): string {
  const document = new Document({})
  for (const { pointer, value, from } of effective) {
    const path = pointer
      .slice(1)
      .split('/')
      .map((token) => (/^\d+$/.test(token) ? Number(token) : token))
    const node = document.createNode(value, { flow: true })
    if (isNode(node)) node.comment = ` ${from}`
    for (let depth = 1; depth < path.length; depth++) {
      const around = path.slice(0, depth)
      if (!document.hasIn(around))
        document.setIn(around, document.createNode(typeof path[depth] === 'number' ? [] : {}))
    }
    document.setIn(path, node)
  }
  return document.toString({ lineWidth: 0 })
}

const NO_CERTIFICATE: Problem = {
  where: 'proxy.tls.certificates',
  what: 'none is given; one is made for development, which no client trusts by itself',
}
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
