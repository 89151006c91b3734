import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { loadConfig, type ParsedConfig, type StartupConfig } from '../../config/config.ts'
import type { ConfigRole } from '../../config/checks.ts'
import { ConfigFault, type Problem, parsePolicyText } from '../../config/source.ts'
import { Fault } from '../../shared/fault.ts'
import { AsnFile } from '../../identity/address/asn-file.ts'
import { PUBLISHED_KEYS } from '../../identity/signature/published-keys.ts'
import { loadKeyPairs } from '../../proxy/tls/key-pair.ts'
import type { Arguments } from '../../terminal/command.ts'
import { configFlags } from '../../terminal/config-options.ts'
import type { Io } from '../../terminal/io.ts'
import { configuredNames } from '../../runtime/signatures/knowledge-source.ts'
import { loadWeights } from '../../runtime/signatures/knowledge-files.ts'
import { TicketKeyPart } from '../../runtime/live-parts.ts'
import { loadContent } from '../../runtime/signatures/signature-content.ts'
import { signingKeysIn } from '../../runtime/signing-key-file.ts'

/** Findings about a configuration and the files it names. */
export interface ConfigReport {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  /** `null`: unreadable. */
  readonly parsed: ParsedConfig | null
}

/** Checks everything, even if the first part has problems. */
export async function configReport(given: Arguments, io: Io, role?: ConfigRole): Promise<ConfigReport> {
  try {
    const more = role === undefined ? {} : { role }
    const parsed = loadConfig(configFlags(given), given.value('config'), io.env, more)
    const inFiles = await checkFiles(parsed.config, role)
    return { problems: inFiles.problems, warnings: [...parsed.warnings, ...inFiles.warnings], parsed }
  } catch (error) {
    return { problems: problemsOf(error, 'settings'), warnings: [], parsed: null }
  }
}

/** Checks every named file, even if the first one has problems. */
async function checkFiles(
  config: StartupConfig,
  role: ConfigRole | undefined,
): Promise<Omit<ConfigReport, 'parsed'>> {
  const { proxy, policy, signatures, weights, feeds, identity, signing } = config
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const attempt = async (where: string, look: () => Promise<readonly (string | Problem)[]>) => {
    try {
      for (const each of await look()) warnings.push(typeof each === 'string' ? { where, what: each } : each)
    } catch (error) {
      problems.push(...problemsOf(error, where))
    }
  }
  const { certificates, clientCaFile, ticketKeyFile } = proxy.tls
  if (certificates.length === 0 && role !== 'manage') warnings.push(NO_CERTIFICATE)
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
  const servesAnyHost = role !== 'manage' && proxy.hosts.length === 0
  if (policy.file !== null)
    await attempt('policy.file', () => checkPolicy(policy.file!, names, config, servesAnyHost))
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

async function checkPolicy(
  file: string,
  upstreams: readonly string[],
  config: StartupConfig,
  servesAnyHost: boolean,
): Promise<readonly (string | Problem)[]> {
  const text = (await read(file)).toString('utf8')
  const { policy, warnings } = parsePolicyText(text, file, upstreams)
  const ofHosts = servesAnyHost && policy.asked.host ? [ANY_HOST] : []
  if (policy.ids.length === 0) return [...warnings, ...ofHosts]
  // Unreadable signatures are reported separately.
  const names = await configuredNames(config).catch(() => null)
  return [...parsePolicyText(text, file, upstreams, names).warnings, ...ofHosts]
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

const NO_CERTIFICATE: Problem = {
  where: 'proxy.tls.certificates',
  what: 'none is given; one is made for development, which no client trusts by itself',
}
const ANY_HOST =
  'a rule asks for the host, and any other host reaches the same app: name those that are served in proxy.hosts'
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
