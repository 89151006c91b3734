import { createPrivateKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { chmod, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Fault } from '../../shared/fault.ts'

/** A certificate for this machine's own names, issued by a CA that exists only in one folder. */
export interface DevelopmentCertificate {
  /** PEM: the certificate, then its private key. */
  readonly file: string
  /** The names and addresses it covers. */
  readonly names: readonly string[]
  /** PEM: the CA certificate that a client has to trust. */
  readonly caFile: string
  /** SHA-256 of the CA certificate, as browsers and openssl show it. */
  readonly caFingerprint: string
  /** Whether the CA was just created. Clients that trusted an older one do not trust it. */
  readonly isNew: boolean
}

/**
 * Loads the development certificate from `folder` or creates it. It is renewed in time, by the same CA. The
 * CA may only issue for this machine's names (RFC 5280 §4.2.1.10), so trusting it puts no other site at risk.
 * The keys are ECDSA P-256, which signs some ten times faster than RSA. node-forge signs with RSA only, hence
 * @peculiar/x509, which is loaded only to create a certificate.
 */
export async function developmentCertificate(
  folder: string,
  hostName: string,
  nowMs: number,
): Promise<DevelopmentCertificate> {
  try {
    const kept = await keptCa(folder, nowMs)
    if (kept === null) await makeAll(folder, hostName, nowMs)
    const ca = new X509Certificate(await readFile(join(folder, CA)))
    const names = vouchedNames(ca, hostName)
    if (!(await hasGoodLeaf(folder, ca, names, nowMs))) await makeLeaf(folder, names, nowMs)
    await guard(folder)
    return {
      file: join(folder, LEAF),
      names: [...names, ...ADDRESSES],
      caFile: join(folder, CA),
      caFingerprint: ca.fingerprint256,
      isNew: kept === null,
    }
  } catch (error) {
    throw new Fault('DEVELOPMENT_CA', faultText(folder, error), { cause: error })
  }
}

/** `null` if there is no CA or it is no longer usable. */
async function keptCa(folder: string, nowMs: number): Promise<X509Certificate | null> {
  try {
    const ca = new X509Certificate(await readFile(join(folder, CA)))
    const isWhole = ca.checkPrivateKey(await privateKey(join(folder, CA_KEY)))
    return isWhole && daysLeft(ca, nowMs) > LEAF_DAYS ? ca : null
  } catch (error) {
    if (isSystemError(error) && error.code !== 'ENOENT') throw error
    return null
  }
}

async function hasGoodLeaf(
  folder: string,
  ca: X509Certificate,
  names: readonly string[],
  nowMs: number,
): Promise<boolean> {
  try {
    const leaf = new X509Certificate(await readFile(join(folder, LEAF)))
    const isWhole = leaf.checkPrivateKey(await privateKey(join(folder, LEAF)))
    const isFor = names.every((name) => leaf.checkHost(name, { subject: 'never' }) !== undefined)
    return isWhole && isFor && leaf.verify(ca.publicKey) && daysLeft(leaf, nowMs) > RENEWAL_DAYS
  } catch (error) {
    if (isSystemError(error) && error.code !== 'ENOENT') throw error
    return false
  }
}

/** The folder appears complete or not at all, so that two processes that start at once use the same CA. */
async function makeAll(folder: string, hostName: string, nowMs: number): Promise<void> {
  const draft = besides(folder)
  await mkdir(dirname(folder), { recursive: true })
  await mkdir(draft, { mode: 0o700 })
  try {
    const maker = await import('./certificate-maker.ts')
    const names = dnsNames(hostName)
    const ca = await maker.makeCa(caName(names), names, nowMs, CA_DAYS)
    await writeFile(join(draft, CA), ca.certificate, OWNER_ONLY)
    await writeFile(join(draft, CA_KEY), ca.key, OWNER_ONLY)
    await makeLeaf(draft, names, nowMs)
    await putInPlace(draft, folder, nowMs)
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

async function putInPlace(draft: string, folder: string, nowMs: number): Promise<void> {
  try {
    await rename(draft, folder)
  } catch (error) {
    if (!isSystemError(error) || (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST')) throw error
    if ((await keptCa(folder, nowMs)) !== null) return // another process created one
    const unusable = besides(folder)
    await rename(folder, unusable)
    await rename(draft, folder)
    await rm(unusable, { recursive: true, force: true })
  }
}

async function makeLeaf(folder: string, names: readonly string[], nowMs: number): Promise<void> {
  const maker = await import('./certificate-maker.ts')
  const ca = {
    certificate: await readFile(join(folder, CA), 'utf8'),
    key: await readFile(join(folder, CA_KEY), 'utf8'),
  }
  const leaf = await maker.makeLeaf(ca, names, ADDRESSES, nowMs, LEAF_DAYS)
  const file = join(folder, LEAF)
  const draft = besides(file)
  // One file, so that certificate and key change together.
  await writeFile(draft, leaf.certificate + leaf.key, OWNER_ONLY)
  await rename(draft, file)
}

/** Restricts the keys to their owner, wherever the folder came from (a restored backup, a volume). */
async function guard(folder: string): Promise<void> {
  await setMode(folder, 0o700)
  for (const file of [CA_KEY, LEAF]) await setMode(join(folder, file), 0o600)
}

/** Skips an unchanged mode, because file watchers also report a change to the same value. */
async function setMode(path: string, mode: number): Promise<void> {
  if (((await stat(path)).mode & 0o777) !== mode) await chmod(path, mode)
}

function besides(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}`
}

async function privateKey(file: string): Promise<KeyObject> {
  return createPrivateKey(await readFile(file))
}

function dnsNames(hostName: string): string[] {
  const name = hostName.toLowerCase()
  const isUsable = DNS_NAME.test(name) && name !== LOCALHOST
  return isUsable ? [LOCALHOST, name] : [LOCALHOST]
}

/**
 * A container has a new host name each time while the CA in its volume stays trusted. So the CA is kept and
 * only issues for the names it allows.
 */
function vouchedNames(ca: X509Certificate, hostName: string): string[] {
  const names = dnsNames(hostName)
  const vouchesForAll = ca.subject.split('\n').includes(`CN=${caName(names)}`)
  return vouchesForAll ? names : [LOCALHOST]
}

function caName(names: readonly string[]): string {
  return `Gatehouse development CA for ${names.at(-1)}`.slice(0, COMMON_NAME_MAX)
}

function daysLeft(certificate: X509Certificate, nowMs: number): number {
  return (certificate.validToDate.getTime() - nowMs) / DAY_MS
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

function faultText(folder: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error)
  return (
    `the development certificate cannot be kept in ${folder} (${reason}); ` +
    'give --data a folder that can be written, or bring a certificate with --cert and --key'
  )
}

const CA = 'ca.pem'
const CA_KEY = 'ca-key.pem'
const LEAF = 'localhost.pem'
const OWNER_ONLY = { mode: 0o600 }
const LOCALHOST = 'localhost'
const ADDRESSES = ['127.0.0.1', '::1']
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/
/** RFC 5280 appendix A.1, ub-common-name. */
const COMMON_NAME_MAX = 64
const DAY_MS = 86_400_000
const CA_DAYS = 3650
/** Browsers reject a leaf that is valid for more than 398 days. */
const LEAF_DAYS = 397
/** Enough time for a long-running process that checks only now and then. */
const RENEWAL_DAYS = 30
