/** The address of a syslog receiver. */
export interface SyslogPlace {
  readonly protocol: 'udp' | 'tcp' | 'tls'
  readonly host: string
  readonly port: number
  /** PEM certificates that are trusted instead of the system's. */
  readonly ca: string | null
}

/** Parses a URL that the configuration has validated, such as `tls://logs.example:6514`. */
export function syslogPlace(url: string, ca: string | null): SyslogPlace {
  const [, protocol, host, port] = /^(\w+):\/\/(.*):(\d+)$/.exec(url)!
  return {
    protocol: protocol as SyslogPlace['protocol'],
    host: host!.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port),
    ca,
  }
}

/** If a receiver is gone, the network reports it within this time, if it does at all. */
export const CONFIRM_MS = 2_000
/** Must be shorter than a turn of SinkRunner. */
export const TIMEOUT_MS = 10_000
