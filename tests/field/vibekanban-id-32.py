"""BloopAI/vibe-kanban#3232: of an integer id only the low 32 bits come back."""
from common import Server, main


class Id32(Server):
    name = "vibekanban-id-32"

    def answer(self, session, message, send, started=None):
        answer = super().answer(session, message, send, started)
        if self.buggy and answer is not None and isinstance(answer["id"], int):
            answer["id"] = (answer["id"] + 2 ** 31) % 2 ** 32 - 2 ** 31
        return answer


main(Id32)
