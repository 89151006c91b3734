import { createSecureContext } from 'node:tls'
import { Fault } from '../shared/fault.ts'
import { readBoundedSync } from '../shared/bounded-file.ts'

/** Where the NATS credentials are: in files, which may change, or in the settings themselves. */
export interface BusCredentialSettings {
  /** Contains a JWT and its seed. */
  readonly credentialsFile: string | null
  readonly user: string | null
  readonly password: string | null
  readonly token: string | null
  /** The files of user, password and token. They are read again for each new connection. */
  readonly secretFiles?: { readonly [Name in 'user' | 'password' | 'token']: string | null }
  readonly tls: {
    readonly caFile: string | null
    readonly certificateFile: string | null
    readonly keyFile: string | null
  }
}

/** The NATS credentials. */
export interface BusCredentials {
  readonly jwt: string | null
  readonly user: string | null
  readonly password: string | null
  readonly token: string | null
  readonly ca: string | null
  readonly certificate: string | null
  readonly key: string | null
}

/** Throws a Fault if a file cannot be read, or if certificate and key do not match. */
export function readBusCredentials(settings: BusCredentialSettings): BusCredentials {
  const { credentialsFile, user, password, token, secretFiles, tls } = settings
  const { caFile, certificateFile, keyFile } = tls
  const secret = (file: string | null | undefined, given: string | null) => (file ? secretIn(file) : given)
  const credentials = {
    jwt: optional(credentialsFile),
    user: secret(secretFiles?.user, user),
    password: secret(secretFiles?.password, password),
    token: secret(secretFiles?.token, token),
    ca: optional(caFile),
    certificate: optional(certificateFile),
    key: optional(keyFile),
  }
  refuseMismatch(credentials, certificateFile ?? caFile ?? '')
  return credentials
}

/** The files that readBusCredentials reads, in a stable order. */
export function busCredentialFiles(settings: BusCredentialSettings): readonly string[] {
  const { credentialsFile, secretFiles, tls } = settings
  const { caFile, certificateFile, keyFile } = tls
  const { user, password, token } = secretFiles ?? { user: null, password: null, token: null }
  const files = [credentialsFile, user, password, token, caFile, certificateFile, keyFile]
  return files.filter((file) => file !== null)
}

function refuseMismatch({ ca, certificate, key }: BusCredentials, file: string): void {
  try {
    createSecureContext({
      ...(ca === null ? {} : { ca }),
      ...(certificate === null || key === null ? {} : { cert: certificate, key }),
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Fault(
      'BUS_CREDENTIALS_INVALID',
      `the TLS files of the bus (${file}) cannot be used: ${code ?? message}. The key has to be that of the certificate`,
      { cause: error },
    )
  }
}

function secretIn(file: string): string {
  const text = textOf(file).replace(/\r?\n$/, '')
  if (text === '') throw new Fault('BUS_CREDENTIALS_INVALID', `${file} is empty`)
  return text
}

function optional(file: string | null): string | null {
  return file === null ? null : textOf(file)
}

function textOf(file: string): string {
  try {
    return readBoundedSync(file).toString('utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault('FILE_UNREADABLE', `${file} cannot be read (${code})`, { cause: error })
  }
}
