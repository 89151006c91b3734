import { Fault } from '../shared/fault.ts'
import type { Log } from '../shared/log.ts'
import { Secret, secretLines, secretText } from '../shared/secret.ts'
import { filesInUrl, type StoreLogin } from '../store/engine/store-login.ts'
import type { StorePlace } from './store-place.ts'
import {
  type BusCredentialSettings,
  type BusCredentials,
  busCredentialFiles,
  readBusCredentials,
} from '../plane/bus-credentials.ts'
import type { JetStreamConnection } from '../plane/jetstream/jetstream-connection.ts'
import { type ReloadPart, Reloader } from './reload.ts'
import { readBoundedText } from '../shared/bounded-file.ts'

/** The keys that encrypt secrets in the database, if the settings name a key file. */
export class EncryptionKeyPart implements ReloadPart<readonly Secret<string>[]> {
  readonly what = 'encryption-keys'
  readonly #file: string
  readonly #use: (keys: readonly Secret<string>[]) => void

  constructor(file: string, use: (keys: readonly Secret<string>[]) => void) {
    this.#file = file
    this.#use = use
  }

  async files(): Promise<readonly string[]> {
    return [this.#file]
  }

  async load(): Promise<readonly Secret<string>[]> {
    const lines = secretLines(await textOf(this.#file))
    if (lines.length === 0) throw new Fault('ENCRYPTION_KEYS_INVALID', `${this.#file} has no key in it`)
    if (lines.some((line) => line.length < KEY_LENGTH_MIN))
      throw new Fault(
        'ENCRYPTION_KEYS_INVALID',
        `${this.#file} has a key of fewer than ${KEY_LENGTH_MIN} characters, which could be guessed: one key a line`,
      )
    return lines.map((line) => new Secret(line, this.#file))
  }

  use(keys: readonly Secret<string>[]): void {
    this.#use(keys)
  }
}

/** `null`: no key file is configured, so the keys cannot change. */
export function encryptionKeyPart(
  keys: readonly Secret<string>[],
  use: (keys: readonly Secret<string>[]) => void,
): EncryptionKeyPart | null {
  const file = keys[0]?.file ?? null
  return file === null ? null : new EncryptionKeyPart(file, use)
}

/** The password of the database user, and the TLS files that `store.url` names. */
export class StoreLoginPart implements ReloadPart<string | null> {
  readonly what = 'store-credentials'
  readonly #url: string
  readonly #login: StoreLogin
  #isFirst = true

  constructor(url: string, login: StoreLogin) {
    this.#url = url
    this.#login = login
  }

  async files(): Promise<readonly string[]> {
    const { passwordFile } = this.#login
    return [...(passwordFile === null ? [] : [passwordFile]), ...filesInUrl(this.#url)]
  }

  async load(): Promise<string | null> {
    const { passwordFile } = this.#login
    const password = passwordFile === null ? this.#login.password : secretText(await textOf(passwordFile))
    if (password === '') throw new Fault('STORE_CREDENTIALS_INVALID', `${passwordFile} is empty`)
    // Not at startup: the database may be unreachable then, and the code that opens it reports that.
    if (!this.#isFirst) await (await import('../store/engine/postgres.ts')).checkLogin(this.#url, password)
    this.#isFirst = false
    return password
  }

  use(password: string | null): void {
    this.#login.renew(password)
  }
}

/** The password for ClickHouse. */
class TrafficLoginPart implements ReloadPart<string> {
  readonly what = 'traffic-credentials'
  readonly #login: StoreLogin
  readonly #file: string

  constructor(login: StoreLogin, file: string) {
    this.#login = login
    this.#file = file
  }

  async files(): Promise<readonly string[]> {
    return [this.#file]
  }

  async load(): Promise<string> {
    const password = secretText(await textOf(this.#file))
    if (password === '') throw new Fault('STORE_CREDENTIALS_INVALID', `${this.#file} is empty`)
    return password
  }

  use(password: string): void {
    this.#login.renew(password)
  }
}

function trafficLoginPart(login: StoreLogin | null): TrafficLoginPart | null {
  const file = login?.passwordFile ?? null
  return file === null ? null : new TrafficLoginPart(login!, file)
}

/** `null`: no credentials for the database are in files. */
async function storeLoginPart(url: string, login: StoreLogin): Promise<StoreLoginPart | null> {
  if (!/^postgres(?:ql)?:/.test(url)) return null
  const part = new StoreLoginPart(url, login)
  return (await part.files()).length === 0 ? null : part
}

/** The credentials for NATS: user, password, token, credentials file and TLS files. */
export class BusCredentialPart implements ReloadPart<BusCredentials> {
  readonly what = 'bus-credentials'
  readonly #settings: BusCredentialSettings
  readonly #connection: Pick<JetStreamConnection, 'check' | 'use'>

  constructor(settings: BusCredentialSettings, connection: Pick<JetStreamConnection, 'check' | 'use'>) {
    this.#settings = settings
    this.#connection = connection
  }

  async files(): Promise<readonly string[]> {
    return busCredentialFiles(this.#settings)
  }

  async load(): Promise<BusCredentials> {
    const credentials = readBusCredentials(this.#settings)
    await this.#connection.check(credentials)
    return credentials
  }

  use(credentials: BusCredentials): void {
    this.#connection.use(credentials)
  }
}

/**
 * Loads and uses the credentials for NATS and the database, because they may have changed since the settings were
 * read. Returns what reloads them. `null`: not used.
 */
export async function loadCredentials(
  bus: {
    readonly settings: BusCredentialSettings
    readonly connection: Pick<JetStreamConnection, 'check' | 'use'>
  } | null,
  store: StorePlace | null,
  log: Log,
): Promise<readonly Reloader<unknown>[]> {
  const parts = [
    bus === null ? null : new BusCredentialPart(bus.settings, bus.connection),
    store === null ? null : await storeLoginPart(store.storeUrl, store.storeLogin),
    trafficLoginPart(store?.traffic?.login ?? null),
  ]
  const reloaders: Reloader<unknown>[] = []
  for (const part of parts) {
    if (part === null) continue
    const each = part as ReloadPart<unknown>
    const { value, reloader } = await Reloader.load(each, log)
    each.use(value)
    reloaders.push(reloader)
  }
  return reloaders
}

async function textOf(file: string): Promise<string> {
  try {
    return await readBoundedText(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}

/** The same minimum as the setting's. */
const KEY_LENGTH_MIN = 16
