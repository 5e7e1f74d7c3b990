"""Board: the shared folder of a study, to which collectors and contributors write signed files.

No file is ever replaced. So all collectors read the same, in any order and again after a restart. Where they
must agree, the first file of a name decides: `decide`. What only one collector may read is sealed to its key
(HPKE, RFC 9180). The package `cryptography` seals and signs (Ed25519).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from privsyn.collectors.promise import Promise, threshold_of
from privsyn.errors import InputError, replace_errors
from privsyn.owners.journal import Journal, write_once
from privsyn.progress import Progress

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.hpke import Suite

KEY, SIGNATURE, SEAL = 32, 64, 48  # bytes of a key and of a signature, and what sealing adds to a message
SALT = 16  # random bytes of each collector that tell a study from another one with the same keys and schema
POLL = 0.02  # seconds between two looks at the folder
STUDY = "study.json"
CONTRIBUTIONS = "contributions"
"""The folder within that of the study to which contributors write; they need not write to any other."""

READABLE = 0o644
FEWEST_COLLECTORS, MOST_COLLECTORS = 3, 15


@dataclass(frozen=True)
class PrivateKeys:
    """The keys of a collector or a contributor: one that opens what is sealed to it, and one that signs."""

    box: bytes
    signing: bytes

    @classmethod
    def of_file(cls, file: Path) -> PrivateKeys:
        """Read the keys in a file, or make them. Only this user can read it."""
        if not file.exists():
            write_once(file, _new_keys())
        content = file.read_bytes()
        if len(content) != 2 * KEY:
            raise InputError(f"{file}: is no file of keys: give another one")
        return cls(content[:KEY], content[KEY:])

    @cached_property
    def _box(self) -> X25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return X25519PrivateKey.from_private_bytes(self.box)

    @cached_property
    def _signing(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.signing)

    @property
    def public(self) -> tuple[bytes, bytes]:
        """The public halves: to seal, and to verify."""
        return self._box.public_key().public_bytes_raw(), self._signing.public_key().public_bytes_raw()

    def sign(self, content: bytes) -> bytes:
        """Return a signature."""
        return self._signing.sign(content)

    def unseal(self, sealed: bytes, purpose: bytes) -> bytes | None:
        """Return what was sealed to this key for this purpose; None if it was not."""
        from cryptography.exceptions import InvalidTag

        try:
            return _suite().decrypt(sealed, self._box, info=purpose)
        except (InvalidTag, ValueError):
            return None


def seal(content: bytes, box: bytes, purpose: bytes) -> bytes:
    """Return the content sealed to a public key. It cannot be opened for another purpose."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

    return _suite().encrypt(content, X25519PublicKey.from_public_bytes(box), info=purpose)


def is_signed(content: bytes, signature: bytes, key: bytes) -> bool:
    """Return whether the owner of a public key signed the content."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Study:
    """What is public before anybody contributes: keys of the collectors, a digest of the schema, the promise.

    Parameters
    ----------
    keys : tuple of (bytes, bytes)
        The public keys of each collector.
    schema : bytes
        A digest of how rows are coded.
    promise : Promise
    salt : bytes
        Random. Without it, whoever has the files of a study could send them to the next one again.

    Raises
    ------
    InputError
        If collectors are too few or too many, two have the same keys, or they cannot keep the promise.
    """

    keys: tuple[tuple[bytes, bytes], ...]
    schema: bytes
    promise: Promise
    salt: bytes

    def __post_init__(self) -> None:
        check_place(0, len(self.keys))
        self.promise.check_lost(len(self.keys))
        if len({key for pair in self.keys for key in pair}) < 2 * len(self.keys):
            raise InputError("two collectors of the study have the same key: each needs keys of its own")

    @property
    def threshold(self) -> int:
        """t: how many collectors together learn nothing. Any t + 1 can open sums."""
        return threshold_of(len(self.keys))

    @cached_property
    def digest(self) -> bytes:
        """A digest of the study. It is part of whatever is signed or sealed."""
        return sha256(self._packed).digest()

    @property
    def fingerprint(self) -> str:
        """What the collectors publish, so that contributors can tell their study from another."""
        return self.digest.hex()[:32]

    @property
    def _packed(self) -> bytes:
        keys = [[box.hex(), signing.hex()] for box, signing in self.keys]
        plain = {
            "collectors": keys,
            "degree": self.threshold,
            "schema": self.schema.hex(),
            "promise": asdict(self.promise),
            "salt": self.salt.hex(),
        }
        return json.dumps(plain).encode()

    @classmethod
    def read(cls, folder: Path) -> Study:
        """Read the study in a folder.

        Raises
        ------
        InputError
            If there is none, or its file is not as collectors write it: another number of collectors,
            another degree of the shares, or a key of another size.
        """
        file = folder / STUDY
        if not file.exists():
            raise InputError(f"{folder}: has no study: each collector first runs `privsyn collect --join`")
        damaged = f"{file}: is damaged, or no study of this version of privsyn"
        with replace_errors(damaged):
            content = file.read_bytes()
            plain = json.loads(content)
            keys = tuple((bytes.fromhex(box), bytes.fromhex(signing)) for box, signing in plain["collectors"])
            schema, salt = bytes.fromhex(plain["schema"]), bytes.fromhex(plain["salt"])
            promise = Promise(**plain["promise"])
        study = cls(keys, schema, promise, salt)
        if {len(key) for pair in keys for key in pair} != {KEY} or content != study._packed:
            raise InputError(damaged)
        return study

    @classmethod
    def join(
        cls, folder: Path, party: int, collectors: int, keys: PrivateKeys, schema: bytes, promise: Promise
    ) -> bool:
        """Publish the public keys of a collector; return whether all have joined, so that the study begins.

        Raises
        ------
        InputError
            If somebody else joined under this number, the number of collectors cannot work, or another
            collector promises something else.
        """
        check_place(party, collectors)
        (folder / CONTRIBUTIONS).mkdir(parents=True, exist_ok=True)
        terms = schema + json.dumps(asdict(promise)).encode()
        head = b"".join(keys.public) + terms
        write_once(folder / f"collector.{party}", head + secrets.token_bytes(SALT), READABLE)
        files = [folder / f"collector.{i}" for i in range(collectors)]
        joined = [file.read_bytes() for file in files if file.exists()]
        if (folder / f"collector.{party}").read_bytes()[:-SALT] != head:
            raise InputError(
                f"{folder}: collector {party} joined with another key, schema, epsilon, delta or number of"
                " lost collectors: give the same again"
            )
        if len(joined) < collectors:
            return False
        if {content[2 * KEY : -SALT] for content in joined} != {terms}:
            raise InputError(
                f"{folder}: the collectors have different schemas, or promise another epsilon, delta or"
                " number of lost collectors"
            )
        public = tuple((content[:KEY], content[KEY : 2 * KEY]) for content in joined)
        salt = b"".join(content[-SALT:] for content in joined)
        write_once(folder / STUDY, cls(public, schema, promise, salt)._packed, READABLE)
        return True


def check_place(party: int, collectors: int) -> None:
    """Refuse a number of collectors that cannot work, or of a collector that is none of them."""
    if not FEWEST_COLLECTORS <= collectors <= MOST_COLLECTORS or not 0 <= party < collectors:
        raise InputError(
            f"a study has {FEWEST_COLLECTORS} to {MOST_COLLECTORS} collectors, numbered from 0; got"
            f" {collectors}, and number {party}"
        )


@dataclass(frozen=True, eq=False)
class Board:
    """The folder, as one collector uses it.

    Parameters
    ----------
    folder : Path
    study : Study
    party : int
    keys : PrivateKeys
    journal : Journal
        For this collector's own eyes: what it must not do a second time in another way, even if somebody
        puts an older copy in the place of the folder.
    patience : float
        Seconds to wait for other collectors.
    report : callable
    """

    folder: Path
    study: Study
    party: int
    keys: PrivateKeys
    journal: Journal
    patience: float
    report: Progress

    @property
    def parties(self) -> range:
        """All collectors, from 0."""
        return range(len(self.study.keys))

    def post(self, name: str, content: bytes) -> None:
        """Publish this collector's file of a name. One that is there already stays."""
        file = f"{name}.{self.party}"
        (self.folder / file).parent.mkdir(exist_ok=True)
        write_once(self.folder / file, content + self._signature(file, content), READABLE)

    def has(self, name: str, party: int) -> bool:
        """Return whether a collector has published its file of a name."""
        return (self.folder / f"{name}.{party}").exists()

    def read(self, name: str, party: int) -> bytes:
        """Return a collector's file of a name."""
        return self._verified(f"{name}.{party}", party)

    def posts(self, name: str) -> dict[int, bytes]:
        """Return the files of a name that are there, by collector."""
        return {party: self.read(name, party) for party in self.parties if self.has(name, party)}

    def decide(self, name: str, proposal: Callable[[], bytes]) -> bytes:
        """Return what the first collector proposed under a name: the same for all, and at all times."""
        if not (self.folder / name).exists():
            content = bytes([self.party]) + proposal()
            write_once(self.folder / name, content + self._signature(name, content), READABLE)
        party = (self.folder / name).read_bytes()[0]
        decision = self._verified(name, party if party in self.parties else 0)[1:]
        self.bind(name, decision)
        return decision

    def bind(self, name: str, value: bytes) -> None:
        """Keep a value of the run on first use.

        Raises
        ------
        InputError
            If it was another one before.
        """
        if not self.journal.bind(name.replace("/", "-"), sha256(value).digest()):
            raise InputError(
                f"{self.folder / name}: is not that of the run which {self.journal.folder} resumes: the"
                " folder is an older copy, or another one. A run is never repeated"
            )

    def is_decided(self, name: str) -> bool:
        """Return whether somebody proposed something under a name."""
        return (self.folder / name).exists()

    def wait(self, name: str, parties: Collection[int], *, also: Callable[[], bool] = lambda: False) -> bool:
        """Wait for the files of some collectors, or until `also`; return False if patience ends before."""
        ends = time.monotonic() + self.patience
        for look in count():
            missing = [party for party in parties if not self.has(name, party)]
            if not missing or also():
                return True
            if time.monotonic() > ends:
                return False
            if look == round(1 / POLL):  # after a second
                waiting = f"waiting for {', '.join(f'collector {party}' for party in missing)}"
                self.report(waiting, len(parties) - len(missing), len(parties))
            time.sleep(POLL)
        raise AssertionError

    def wait_for_all(self, name: str) -> dict[int, bytes]:
        """Return the files of all collectors.

        Raises
        ------
        InputError
            If some are missing when patience ends.
        """
        if not self.wait(name, self.parties):
            missing = ", ".join(str(party) for party in self.parties if not self.has(name, party))
            raise InputError(
                f"collector {missing}: no answer in {self.patience:g} s, and all are needed until the"
                " pairs are counted: start it there, and run this again to resume"
            )
        return self.posts(name)

    def seal_to_all(self, name: str, contents: Collection[bytes]) -> bytes:
        """Return one content for each collector, each sealed to it, one after another."""
        boxes = (box for box, _ in self.study.keys)
        return b"".join(
            seal(content, box, self._purpose(name, self.party, party))
            for party, (content, box) in enumerate(zip(contents, boxes, strict=True))
        )

    def unseal(self, name: str, party: int, sealed: bytes) -> bytes:
        """Return what a collector sealed to this one in its file of a name."""
        size = len(sealed) // len(self.parties)
        part = sealed[self.party * size : (self.party + 1) * size]
        content = self.keys.unseal(part, self._purpose(name, party, self.party))
        if content is None:
            raise InputError(f"{name}.{party}: is not sealed to collector {self.party}")
        return content

    def _purpose(self, name: str, sender: int, receiver: int) -> bytes:
        return self.study.digest + f"{name}.{sender}.{receiver}".encode()

    def _signature(self, file: str, content: bytes) -> bytes:
        return self.keys.sign(self.study.digest + file.encode() + b"\0" + content)

    def _verified(self, file: str, party: int) -> bytes:
        content = (self.folder / file).read_bytes()
        signed, signature = content[:-SIGNATURE], content[-SIGNATURE:]
        text = self.study.digest + file.encode() + b"\0" + signed
        if not is_signed(text, signature, self.study.keys[party][1]):
            raise InputError(f"{self.folder / file}: was not signed by collector {party}, or changed since")
        return signed


def _suite() -> Suite:
    from cryptography.hazmat.primitives import hpke

    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305)


def _new_keys() -> bytes:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        from cryptography.hazmat.primitives.hpke import Suite  # noqa: F401
    except ImportError:
        raise InputError("collectors need cryptography: pip install 'privsyn[collectors]'") from None
    return X25519PrivateKey.generate().private_bytes_raw() + Ed25519PrivateKey.generate().private_bytes_raw()
