import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { loadInspected, type ParsedConfig, type StartupConfig } from '../../config/config.ts'
import type { ConfigRole } from '../../config/checks.ts'
import { ConfigFault, type Problem } from '../../config/source.ts'
import { type PolicyText, parsePolicyText } from '../../runtime/policy-source.ts'
import { Fault } from '../../shared/fault.ts'
import { AsnFile } from '../../identity/address/asn-file.ts'
import { PUBLISHED_KEYS } from '../../identity/signature/published-keys.ts'
import { type KeyPair, loadKeyPairs } from '../../proxy/tls/key-pair.ts'
import type { Arguments } from '../../terminal/command.ts'
import { configFlags } from '../../terminal/config-options.ts'
import type { Io } from '../../terminal/io.ts'
import { configuredNames } from '../../runtime/signatures/knowledge-source.ts'
import { loadWeights } from '../../runtime/signatures/knowledge-files.ts'
import { TicketKeyPart } from '../../runtime/live-parts.ts'
import { keyPairSource } from '../../runtime/startup.ts'
import { HostSet, hostOf } from '../../wire/host.ts'
import { misfitsOf } from './policy-fit.ts'
import { loadContent } from '../../runtime/signatures/signature-content.ts'
import { signingKeysIn } from '../../runtime/signing-key-file.ts'
import { readSnapshotFile } from '../../plane/snapshot-file.ts'
import { readBounded } from '../../shared/bounded-file.ts'

/** Findings about a configuration and the files it names. */
export interface ConfigReport {
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  /** `null`: the settings are unreadable or invalid. */
  readonly parsed: ParsedConfig | null
}

/** Checks everything: if settings are invalid, also the files that the other settings name. */
export async function configReport(given: Arguments, io: Io, role?: ConfigRole): Promise<ConfigReport> {
  const more = role === undefined ? {} : { role }
  try {
    const { problems, parsed } = loadInspected(configFlags(given), given.value('config'), io.env, more)
    if (parsed === null) return { problems, warnings: [], parsed }
    const inFiles = await checkFiles(parsed.config, role, problems.length === 0)
    return {
      problems: [...problems, ...inFiles.problems],
      warnings: [...parsed.warnings, ...inFiles.warnings],
      parsed: problems.length === 0 ? parsed : null,
    }
  } catch (error) {
    return { problems: problemsOf(error, 'settings'), warnings: [], parsed: null }
  }
}

/**
 * Checks every named file, even if the first one has problems. Files are compared with settings only if all
 * settings are valid, because invalid ones have been replaced by their defaults.
 */
async function checkFiles(
  config: StartupConfig,
  role: ConfigRole | undefined,
  areSettingsValid: boolean,
): Promise<Omit<ConfigReport, 'parsed'>> {
  const { proxy, manage, policy, signatures, weights, feeds, identity, signing, bus } = config
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
  if (certificates.length === 0 && role !== 'manage' && areSettingsValid) warnings.push(NO_CERTIFICATE)
  const pairs: KeyPair[] = []
  for (const [index, certificate] of certificates.entries())
    await attempt(`proxy.tls.certificates[${index}]`, async () => {
      const loaded = await loadKeyPairs([keyPairSource(certificate)], Date.now())
      pairs.push(...loaded.pairs)
      return loaded.warnings
    })
  if (pairs.length > 0 && pairs.length === certificates.length && areSettingsValid)
    warnings.push(...uncoveredHosts(proxy.hosts, pairs))
  const { certificate } = manage
  if (certificate !== null)
    await attempt('manage.tls', async () => {
      return (await loadKeyPairs([keyPairSource(certificate)], Date.now())).warnings
    })
  for (const [where, caFile] of [
    ['proxy.tls.client_ca_file', clientCaFile],
    ['webhooks.ca_file', config.webhooks.caFile],
    ['sinks.syslog_ca_file', config.sinks.syslogCaFile],
    ['sinks.parquet.ca_file', parquetCaFile(config)],
    ['sinks.nats.ca_file', config.sinks.nats?.caFile ?? null],
    ['sinks.otlp_logs.ca_file', config.sinks.otlpLogs?.caFile ?? null],
    ['auth.openid.ca_file', config.auth.openid?.caFile ?? null],
    ['bus.ca_file', bus.caFile],
    ['payments.x402.ca_file', config.payments.facilitator?.caFile ?? null],
    ['payments.license.ca_file', config.payments.licenseServer?.caFile ?? null],
    ...proxy.upstreams.map(
      ({ tls }, index) => [`proxy.upstreams[${index}].tls.ca_file`, tls.caFile] as const,
    ),
    ...feeds.map(({ caFile }, index) => [`feeds[${index}].ca_file`, caFile] as const),
  ] as const)
    if (caFile !== null) await attempt(where, () => checkCa(caFile))
  for (const [where, file] of [
    ['bus.credentials_file', bus.credentialsFile],
    ['bus.user_file', bus.userFile],
    ['sinks.nats.credentials_file', config.sinks.nats?.credentialsFile ?? null],
    ['sinks.nats.user_file', config.sinks.nats?.userFile ?? null],
    ['threats.robots_file', config.threats.robots.file],
  ] as const)
    if (file !== null) await attempt(where, () => checkReadable(file))
  const { bootstrapFile } = bus
  if (bootstrapFile !== null) await attempt('bus.bootstrap_file', () => checkBootstrap(bootstrapFile))
  const { certificateFile, keyFile: busKeyFile } = bus
  if (certificateFile !== null && busKeyFile !== null)
    await attempt('bus.certificate_file', async () => {
      const source = { certificateFile, keyFile: busKeyFile, passphrase: null }
      return (await loadKeyPairs([source], Date.now())).warnings
    })
  if (ticketKeyFile !== null) {
    await attempt('proxy.tls.ticket_key_file', async () => {
      await new TicketKeyPart(ticketKeyFile, () => undefined).load()
      return []
    })
  }
  if (policy.file !== null)
    await attempt('policy.file', async () => {
      const { warnings, ...read } = await checkPolicy(policy.file!, config)
      return areSettingsValid ? [...warnings, ...ofSettings(read, config, role)] : warnings
    })
  if (signatures.length > 0) await attempt('signatures', () => checkSignatures(signatures))
  if (weights.file !== null) await attempt('weights.file', () => checkWeights(weights.file!))
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

async function checkPolicy(file: string, config: StartupConfig): Promise<PolicyText> {
  const text = (await read(file)).toString('utf8')
  const upstreams = config.proxy.upstreams.map(({ name }) => name)
  const { bus, proxy } = config
  const of = bus.urls.length > 0 && proxy.app !== null ? 'app' : 'organisation'
  const payments = config.payments.terms
  const parsed = parsePolicyText(text, file, { of, upstreams, payments })
  if (parsed.policy.ids.length === 0) return parsed
  // Unreadable signatures are reported separately.
  const names = await configuredNames(config).catch(() => null)
  return parsePolicyText(text, file, { of, upstreams, payments, names })
}

/** Warns about rules that other settings make useless or unsafe. */
function ofSettings(
  text: Pick<PolicyText, 'policy' | 'placed' | 'document'>,
  config: StartupConfig,
  role: ConfigRole | undefined,
): readonly (string | Problem)[] {
  const servesAnyHost = role !== 'manage' && config.proxy.hosts.length === 0
  return [
    ...(servesAnyHost && text.policy.asked.host ? [ANY_HOST] : []),
    ...misfitsOf(text, config).map(text.placed),
  ]
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
    ({ thumbprint }) => `${thumbprint} in ${file} is a published key for tests, so anyone can sign with it`,
  )
}

async function checkReadable(file: string): Promise<readonly string[]> {
  await read(file)
  return []
}

/** A warning, because a proxy also starts with what NATS has. */
async function checkBootstrap(file: string): Promise<readonly string[]> {
  try {
    await readSnapshotFile(file)
    return []
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return [`${error.message}; without it, a proxy needs NATS at its first start`]
  }
}

/** Clients refuse a certificate that does not name the host that they asked for. */
function uncoveredHosts(hosts: readonly string[], pairs: readonly KeyPair[]): readonly Problem[] {
  const names = pairs.flatMap(({ dnsNames }) => dnsNames)
  const covered = new HostSet(names)
  return hosts.flatMap((host, index) => {
    const name = hostOf(host)
    // Certificates for addresses have no DNS name.
    if (isIP(name.replace(/^\[|\]$/g, '')) !== 0 || names.includes(name) || covered.has(name)) return []
    const what = `no certificate in proxy.tls.certificates names "${host}"; clients will refuse the connection`
    return [{ where: `proxy.hosts[${index}]`, what }]
  })
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

function parquetCaFile({ sinks }: StartupConfig): string | null {
  const place = sinks.parquet?.place
  return place !== undefined && 'bucket' in place ? place.bucket.caFile : null
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readBounded(file)
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
