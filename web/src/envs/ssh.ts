/** How one gets in by SSH, as lines to copy. Pure. */
export interface Door {
  user: string;
  host: string;
  port: number;
}

/** From the command that the server tells: `ssh -p 8472 ann+dev@yard.example`. */
export function doorOf(command: string): Door | null {
  const match = /^ssh -p ([0-9]+) (\S+)@(\S+)$/.exec(command);
  return match ? { port: Number(match[1]), user: match[2] ?? "", host: match[3] ?? "" } : null;
}

export const aliasOf = (name: string): string => `yard-${name}`;

export function configOf(name: string, door: Door): string {
  return [`Host ${aliasOf(name)}`, `  HostName ${door.host}`, `  Port ${door.port}`, `  User ${door.user}`].join("\n");
}

export function codeCommand(name: string, owner: string): string {
  return `code --remote ssh-remote+${aliasOf(name)} /mnt/user/${owner}`;
}

/** A public key without its comment, at this address. */
export function knownHost(door: Door, publicKey: string): string {
  return `[${door.host}]:${door.port} ${publicKey.split(" ").slice(0, 2).join(" ")}`;
}
