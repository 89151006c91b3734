/** Where syslog goes to. */
export interface SyslogPlace {
  readonly protocol: 'udp' | 'tcp' | 'tls'
  readonly host: string
  readonly port: number
  /** Trusted instead of the system's; PEM. */
  readonly ca: string | null
}

/** Of a URL that the configuration has taken: `tls://logs.example:6514`. */
export function syslogPlace(url: string, ca: string | null): SyslogPlace {
  const [, protocol, host, port] = /^(\w+):\/\/(.*):(\d+)$/.exec(url)!
  return {
    protocol: protocol as SyslogPlace['protocol'],
    host: host!.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port),
    ca,
  }
}

/** A receiver that has died is missed by then, where anything between here and there says so. */
export const CONFIRM_MS = 2_000
/** Shorter than a turn at a sink. */
export const TIMEOUT_MS = 10_000
