import { describe, expect, it } from "vitest";
import { codeCommand, configOf, doorOf, knownHost } from "./ssh";

describe("the way in by SSH", () => {
  const door = doorOf("ssh -p 8472 ann+dev@yard.example");

  it("is read from the command the server tells", () => {
    expect(door).toEqual({ port: 8472, user: "ann+dev", host: "yard.example" });
    expect(doorOf("telnet there")).toBeNull();
  });

  it("is written so that editors know it by a name", () => {
    if (!door) throw new Error("there is no door");
    expect(configOf("dev", door)).toBe("Host yard-dev\n  HostName yard.example\n  Port 8472\n  User ann+dev");
    expect(codeCommand("dev", "ann")).toBe("code --remote ssh-remote+yard-dev /mnt/user/ann");
    expect(knownHost(door, "ssh-ed25519 AAAA gateway")).toBe("[yard.example]:8472 ssh-ed25519 AAAA");
  });
});
